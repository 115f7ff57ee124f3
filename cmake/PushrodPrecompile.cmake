# SPDX-License-Identifier: Apache-2.0
# Precompiled headers for the builds that are made to be tested, not shipped (PUSHROD_PRECOMPILE): one
# for libraries and one for tests, each compiled once. Only third-party headers, which do not change.
set(PUSHROD_PRECOMPILED_STANDARD <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint>
  <functional> <map> <memory> <mutex> <optional> <span> <string> <string_view> <thread> <utility>
  <variant> <vector>)

# _pushrod_precompile(NAME HEADERS...): an object library that only holds the precompiled header.
function(_pushrod_precompile name)
  set(source ${PROJECT_BINARY_DIR}/precompile/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Holds a precompiled header.\n" @ONLY)
  add_library(${name} OBJECT ${source})
  target_precompile_headers(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE pushrod_build_flags)
endfunction()

# pushrod_use_precompiled(TARGET HOLDER): nothing where precompiling is off.
function(pushrod_use_precompiled target holder)
  if(PUSHROD_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${holder})
  endif()
endfunction()

if(PUSHROD_PRECOMPILE)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Same content, same file: ccache looks at what is in it.
    target_compile_options(pushrod_build_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  _pushrod_precompile(pushrod_precompiled_library ${PUSHROD_PRECOMPILED_STANDARD})
  if(PUSHROD_BUILD_TESTS)
    _pushrod_precompile(pushrod_precompiled_test ${PUSHROD_PRECOMPILED_STANDARD}
      <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(pushrod_precompiled_test PRIVATE GTest::gtest GTest::gmock)
    # Tests are programs; a header precompiled for a library does not fit them.
    target_compile_options(pushrod_precompiled_test PRIVATE -fPIE)
  endif()
endif()
