# LibTorch, wherever it comes from: Debian's libtorch-dev, or by LibTorch_ROOT the archive of pytorch.org or the torch
# package of a Python (the folder that `python -c 'import torch; print(torch.__path__[0])'` prints). Only its two
# libraries for the processor are taken, so that a build with CUDA needs no CUDA toolkit to link with. It must be compiled
# with the C++11 ABI, as all are but Python packages before 2.7 and archives that do not say so in their name.
#
#     LibTorch::LibTorch    the target
#     LibTorch_VERSION      from 1.13 on
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h PATH_SUFFIXES include)
find_library(LibTorch_CPU_LIBRARY torch_cpu PATH_SUFFIXES lib)
find_library(LibTorch_C10_LIBRARY c10 PATH_SUFFIXES lib)
mark_as_advanced(LibTorch_INCLUDE_DIR LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY)

# Newer versions have moved the file.
foreach(file torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(NOT LibTorch_VERSION AND EXISTS "${LibTorch_INCLUDE_DIR}/${file}")
    file(STRINGS "${LibTorch_INCLUDE_DIR}/${file}" lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
    string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
    string(REPLACE ";" "." LibTorch_VERSION "${lines}")
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR VERSION_VAR LibTorch_VERSION)

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_LIBRARY})
  add_library(LibTorch::LibTorch SHARED IMPORTED)
  set_target_properties(LibTorch::LibTorch PROPERTIES IMPORTED_LOCATION ${LibTorch_CPU_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include")
  target_link_libraries(LibTorch::LibTorch INTERFACE LibTorch::c10)
  # A build with CUDA names libraries that nothing here calls.
  target_link_options(LibTorch::LibTorch INTERFACE LINKER:--allow-shlib-undefined)
endif()
