# SPDX-License-Identifier: Apache-2.0
# Build options, the language level and the one interface target that carries our flags.
option(PUSHROD_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(PUSHROD_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(PUSHROD_BUILD_BENCH "Build the benchmarks" OFF)
option(PUSHROD_BUILD_PYTHON "Build the Python package's modules (needs nanobind; see pyproject.toml)" OFF)
option(PUSHROD_WERROR "Warnings are errors" ${PROJECT_IS_TOP_LEVEL})
# Off by default: without it every file proves that it includes what it needs.
option(PUSHROD_PRECOMPILE "Precompile the standard library's and GoogleTest's headers" OFF)
option(PUSHROD_FUZZ "Build the fuzz targets (needs clang)" OFF)
# What GPU transports are loaded from at run time. This version has none: AUTO is OFF, and ON is a
# fault at once instead of a surprise at the first push.
foreach(library NCCL CUDA)
  set(PUSHROD_WITH_${library} AUTO CACHE STRING "Transports over ${library}: AUTO, ON or OFF")
  set_property(CACHE PUSHROD_WITH_${library} PROPERTY STRINGS AUTO ON OFF)
  if(NOT PUSHROD_WITH_${library} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "PUSHROD_WITH_${library} is '${PUSHROD_WITH_${library}}': give AUTO, ON or OFF")
  endif()
  if(PUSHROD_WITH_${library} STREQUAL "ON")
    message(FATAL_ERROR "PUSHROD_WITH_${library} is ON, but this version has no transport over ${library}; "
      "give AUTO or OFF")
  endif()
endforeach()
set(PUSHROD_SANITIZE "" CACHE STRING "Sanitizers for every target, as for -fsanitize (empty: none)")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  endif()
  find_program(PUSHROD_CCACHE ccache)
  if(PUSHROD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${PUSHROD_CCACHE})
    if(PUSHROD_PRECOMPILE)
      # What ccache asks for before it stores objects made with a precompiled header.
      set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros ${PUSHROD_CCACHE})
    endif()
  endif()
endif()

# Private to our own targets: never set for a folder, never exported to a consumer.
add_library(pushrod_build_flags INTERFACE)
target_compile_options(pushrod_build_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${PUSHROD_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 warns falsely about "literal" + std::string in optimised builds (GCC bug 105651).
  target_compile_options(pushrod_build_flags INTERFACE -Wno-restrict)
endif()
if(PUSHROD_SANITIZE)
  target_compile_options(pushrod_build_flags INTERFACE -fsanitize=${PUSHROD_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(pushrod_build_flags INTERFACE -fsanitize=${PUSHROD_SANITIZE})
  if(PUSHROD_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # clang cannot place the check's data for coroutines.
    target_compile_options(pushrod_build_flags INTERFACE -fno-sanitize=function)
  endif()
  if(PUSHROD_SANITIZE MATCHES "thread")
    # Asio's fenced block uses a fence that ThreadSanitizer does not model; its own switch avoids it.
    target_compile_definitions(pushrod_build_flags INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()
if(PUSHROD_FUZZ)
  # Coverage for the fuzzer to steer by; the targets themselves add its main program.
  target_compile_options(pushrod_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Limits of tests are multiplied by this: sanitizers are several times slower.
set(PUSHROD_TEST_SLOW 1)
if(PUSHROD_SANITIZE)
  set(PUSHROD_TEST_SLOW 6)
endif()
