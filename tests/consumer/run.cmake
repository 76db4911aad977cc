# Installs the library into a fresh folder, checks that what is installed names neither the source nor the build tree, and builds and runs
# the consumer against it.
#
#   cmake -D BUILD=... -D SOURCE=... -D CONFIG=... -D CXX=... -D FLAGS=... -D GENERATOR=... -D VERSION=... [-D LIBTORCH=... -D LIBTORCH_ROOT=...] -P run.cmake
set(work ${BUILD}/tests/consumer)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    string(JOIN " " command ${ARGV})
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --config "${CONFIG}" --prefix ${work}/prefix)

# The tree is moved, so that a path to where it was installed would be noticed too.
file(RENAME ${work}/prefix ${work}/moved)
file(GLOB_RECURSE texts ${work}/moved/*.cmake ${work}/moved/*.pc)
if(NOT texts)
  message(FATAL_ERROR "no package files were installed")
endif()
foreach(file IN LISTS texts)
  file(READ ${file} text)
  foreach(path IN ITEMS ${BUILD} ${SOURCE})
    string(FIND "${text}" "${path}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} names ${path}")
    endif()
  endforeach()
endforeach()

# Every header can be included, without the folders that only the build of the library knows.
file(GLOB_RECURSE headers RELATIVE ${work}/moved/include ${work}/moved/include/*.hpp)
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n")
string(JOIN "" includes ${headers})
file(WRITE ${work}/headers.cpp "${includes}")
set(libtorch "")
if(LIBTORCH)
  set(libtorch -idirafter ${LIBTORCH})  # it may be that of the system, which must come last
endif()
run(${CXX} -std=c++20 -fsyntax-only -I ${work}/moved/include ${libtorch} ${work}/headers.cpp)

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build -G ${GENERATOR} -D CMAKE_BUILD_TYPE=${CONFIG} -D CMAKE_CXX_FLAGS_RELEASE=-O1
  -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_CXX_FLAGS=${FLAGS} -D CMAKE_PREFIX_PATH=${work}/moved
  -D LibTorch_ROOT=${LIBTORCH_ROOT})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${CMAKE_COMMAND} -E chdir ${work} ${work}/build/consumer)
message(STATUS "consumer: ${output}")
if(EXISTS ${work}/build/images)
  run(${CMAKE_COMMAND} -E chdir ${work} ${work}/build/images)
  message(STATUS "images: ${output}")
endif()
if(EXISTS ${work}/build/consumer_torch)
  run(${work}/build/consumer_torch)
  message(STATUS "consumer: ${output}")
elseif(LIBTORCH)
  message(FATAL_ERROR "the component torch was not found")
endif()

file(GLOB_RECURSE program ${work}/moved/bin/implicit-diffusion)
if(program)
  run(${program} --version)
  string(FIND "${output}" "${VERSION}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "the installed program says it is version ${output}, not ${VERSION}")
  endif()
endif()
