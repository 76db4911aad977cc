# Compiler warnings, for our own code only, and helpers for the library, its kernels and tests.
option(IMPLICIT_DIFFUSION_WERROR "Warnings are errors" OFF)

add_library(implicit_diffusion_warnings INTERFACE)
target_compile_options(implicit_diffusion_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>  # joined, a name may shadow one of another file
  $<$<BOOL:${IMPLICIT_DIFFUSION_WERROR}>:-Werror>)
# GCC 12 sees an overlap in "text" + std::string() that is not there (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(implicit_diffusion_warnings INTERFACE -Wno-restrict)
endif()

# GCC collects its garbage from 600 MB on, not from a fraction of that: a tenth of the time to compile our largest files.
if(PROJECT_IS_TOP_LEVEL)
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=600000>)
endif()

# implicit_diffusion_join(target [folder=other]...): the files of each folder are compiled as one, which takes about half
# the time, as they have headers and templates in common; those of `folder` together with those of `other`. Files of the
# target's own folder, `.`, are compiled alone unless a pair names it. For builds from nothing; one who works on a file
# compiles it alone.
option(IMPLICIT_DIFFUSION_JOINED "Compile the files of a folder together" OFF)
function(implicit_diffusion_join target)
  get_target_property(files ${target} SOURCES)
  foreach(file ${files})
    cmake_path(GET file PARENT_PATH folder)
    if(NOT folder)
      set(folder .)
    endif()
    foreach(pair ${ARGN})
      string(REGEX REPLACE "=.*" "" from ${pair})
      if(folder STREQUAL from)
        string(REGEX REPLACE ".*=" "" folder ${pair})
      endif()
    endforeach()
    if(NOT folder STREQUAL "." AND NOT file MATCHES "^[$/]")
      set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${folder})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${IMPLICIT_DIFFUSION_JOINED} UNITY_BUILD_MODE GROUP)
endfunction()

# implicit_diffusion_tests(langevin law potential): one GoogleTest program, langevin_test, of langevin/law_test.cpp and
# langevin/potential_test.cpp, which are joined too: a name that is at the top of one file is in no other of its program.
#     FOLDER name             where the files are, if not in one of the program's name
#     PRECOMPILED target      takes the compiled headers of another program; its options must be the same
#     NOT_ONE_BY_ONE          the caller adds the tests
#     LIBRARIES, OPTIONS, DEFINITIONS
function(implicit_diffusion_tests name)
  cmake_parse_arguments(arg "NOT_ONE_BY_ONE" "FOLDER;PRECOMPILED" "LIBRARIES;OPTIONS;DEFINITIONS" ${ARGN})
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${name})
  endif()
  list(TRANSFORM arg_UNPARSED_ARGUMENTS REPLACE "(.+)" "${arg_FOLDER}/\\1_test.cpp" OUTPUT_VARIABLE files)
  add_executable(${name}_test ${files})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests)
  # What is to be fast is in the library.
  target_compile_options(${name}_test PRIVATE $<$<CONFIG:Release>:-Og> ${arg_OPTIONS}
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # GCC sees some that are not there
  target_compile_definitions(${name}_test PRIVATE ${arg_DEFINITIONS})
  target_link_libraries(${name}_test PRIVATE implicit_diffusion::core implicit_diffusion_warnings
    fmt::fmt Eigen3::Eigen GTest::gtest_main ${arg_LIBRARIES})
  set_target_properties(${name}_test PROPERTIES UNITY_BUILD ${IMPLICIT_DIFFUSION_JOINED} UNITY_BUILD_BATCH_SIZE 0)
  if(arg_PRECOMPILED)
    target_precompile_headers(${name}_test REUSE_FROM ${arg_PRECOMPILED})
  endif()
  if(NOT arg_NOT_ONE_BY_ONE)
    gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

# implicit_diffusion_kernels(name LEVELS level... [DEFINITIONS ...] [OPTIMISE -O1]): object libraries NAME_LEVEL of the kernels, one for each
# level.
# Optimised in every build: unoptimised they would leave functions of the standard library, compiled for one level, for
# all to share. Sanitizers in full would take minutes to compile: addresses are checked by calls, and not those on the
# stack; src/langevin/dispatch.cpp has the same templates over double, with all checks.
#
# Loops over dimensions are unrolled up to 12 times, not up to the 16 of the largest arrays: that would be most of the code and of the time to
# compile it, and slower.
#
# Copies of lanes are made of whole vectors: of two halves, as GCC makes them unasked, a load that follows would wait.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag("-mmove-max=512 -mstore-max=512" IMPLICIT_DIFFUSION_HAS_MOVE_MAX)
function(implicit_diffusion_kernels name)
  cmake_parse_arguments(arg "" "OPTIMISE" "LEVELS;DEFINITIONS" ${ARGN})
  foreach(level ${arg_LEVELS})
    set(options -O3 -march=x86-64-${level})
    if(level STREQUAL baseline)
      set(options -O1 -march=x86-64)  # for old machines only, and a third less to compile than -O2
    elseif(IMPLICIT_DIFFUSION_HAS_MOVE_MAX)
      list(APPEND options -mmove-max=512 -mstore-max=512)
    endif()
    add_library(${name}_${level} OBJECT ${PROJECT_SOURCE_DIR}/src/langevin/kernels.cpp
      ${PROJECT_SOURCE_DIR}/src/denoising/kernels.cpp ${PROJECT_SOURCE_DIR}/src/random/kernels.cpp)
    target_compile_features(${name}_${level} PRIVATE cxx_std_20)
    target_include_directories(${name}_${level} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    target_compile_definitions(${name}_${level} PRIVATE ${arg_DEFINITIONS})
    target_compile_options(${name}_${level} PRIVATE ${options} ${arg_OPTIMISE} -ffp-contract=off -fno-math-errno
      -fno-sanitize=undefined
      $<$<CXX_COMPILER_ID:GNU>:--param=max-completely-peel-times=12>
      "$<$<CXX_COMPILER_ID:GNU>:--param=asan-instrumentation-with-call-threshold=0;--param=asan-stack=0>")
    target_link_libraries(${name}_${level} PRIVATE implicit_diffusion_warnings)
    set_target_properties(${name}_${level} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endforeach()
endfunction()
