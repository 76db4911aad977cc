# Installation, for find_package(implicit_diffusion) and for pkg-config.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/implicit_diffusion)
install(TARGETS implicit_diffusion_core implicit_diffusion_report EXPORT implicit_diffusion-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET implicit_diffusion_data)
  install(TARGETS implicit_diffusion_data implicit-diffusion-lmdb EXPORT implicit_diffusion-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
install(EXPORT implicit_diffusion-targets NAMESPACE implicit_diffusion:: DESTINATION ${package_dir})

# Networks are a component of the package, which alone asks for LibTorch.
set(libraries implicit_diffusion_core implicit_diffusion_report)
if(TARGET implicit_diffusion_torch)
  list(APPEND libraries implicit_diffusion_torch)
  set(networks implicit_diffusion_torch)
  if(TARGET implicit_diffusion_images)
    list(APPEND networks implicit_diffusion_images)
    list(APPEND libraries implicit_diffusion_images)
  endif()
  install(TARGETS ${networks} EXPORT implicit_diffusion-torch-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT implicit_diffusion-torch-targets NAMESPACE implicit_diffusion:: DESTINATION ${package_dir})
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/FindLibTorch.cmake DESTINATION ${package_dir})
endif()
# What must be built before it can be installed, beside the program.
add_custom_target(implicit_diffusion_libraries DEPENDS ${libraries})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/implicit_diffusion-config.cmake.in
  ${PROJECT_BINARY_DIR}/implicit_diffusion-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/implicit_diffusion-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/implicit_diffusion-config.cmake
  ${PROJECT_BINARY_DIR}/implicit_diffusion-config-version.cmake
  DESTINATION ${package_dir})

# The prefix relative to the file, so that an installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE libdir)
string(REGEX REPLACE "[^/]+" ".." up ${libdir}/pkgconfig)
configure_file(${CMAKE_CURRENT_LIST_DIR}/implicit_diffusion.pc.in ${PROJECT_BINARY_DIR}/implicit_diffusion.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/implicit_diffusion.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET implicit-diffusion)
  if(TARGET implicit_diffusion_mpi)
    add_dependencies(implicit_diffusion_libraries implicit_diffusion_mpi)
    install(TARGETS implicit_diffusion_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
  if(TARGET implicit-diffusion-networks)
    add_dependencies(implicit_diffusion_libraries implicit-diffusion-networks)
    install(TARGETS implicit-diffusion-networks RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  install(TARGETS implicit-diffusion RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # By this name the shell finds it when the program's is typed.
  install(FILES ${PROJECT_SOURCE_DIR}/completions/implicit-diffusion.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME implicit-diffusion)
endif()
