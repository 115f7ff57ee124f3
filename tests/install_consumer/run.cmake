# SPDX-License-Identifier: Apache-2.0
# Run by CTest with cmake -P; see CMakeLists.txt for the arguments.
function(step name)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${name} failed (${result}):\n${output}")
  endif()
  set(step_output "${output}" PARENT_SCOPE)
endfunction()

set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${WORK})
step("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# Private headers stay private: their folders' names would clash on a consumer's include path.
file(GLOB installed RELATIVE ${prefix}/include ${prefix}/include/*)
if(NOT installed STREQUAL "pushrod")
  message(FATAL_ERROR "include/ holds more than pushrod/: ${installed}")
endif()

# The installed tree must not need the build's folders.
file(GLOB_RECURSE package_files ${prefix}/lib/cmake/pushrod/*.cmake ${prefix}/lib/*/cmake/pushrod/*.cmake)
foreach(file IN LISTS package_files)
  file(READ ${file} text)
  string(FIND "${text}" "${BUILD}" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${file} names the build folder")
  endif()
endforeach()

set(flags "${FLAGS}")
if(SANITIZE)
  string(APPEND flags " -fsanitize=${SANITIZE}")
endif()
step("configure" ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
  -DCMAKE_CXX_FLAGS=${flags} -DEXPECTED_VERSION=${VERSION})
step("build" ${CMAKE_COMMAND} --build ${WORK}/build)
step("run" ${WORK}/build/consumer)
string(FIND "${step_output}" "pushrod ${VERSION}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "the consumer did not print the version ${VERSION}:\n${step_output}")
endif()

# The example is a project of its own too.
step("configure the example" ${CMAKE_COMMAND} -S ${EXAMPLE} -B ${WORK}/example -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
  -DCMAKE_CXX_FLAGS=${flags})
step("build the example" ${CMAKE_COMMAND} --build ${WORK}/example)

# Versions of another minor release are refused.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/other -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER} -DEXPECTED_VERSION=0.999
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
if(result EQUAL 0)
  message(FATAL_ERROR "find_package took version 0.999")
endif()
