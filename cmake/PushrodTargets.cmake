# SPDX-License-Identifier: Apache-2.0
# pushrod_library(NAME SOURCES ... LINK ... PRIVATE_LINK ...): the static library pushrod_NAME with
# the alias pushrod::NAME. Headers are included as "folder/header.h" from the project's root, the
# installed ones as <pushrod/header.h>.
function(pushrod_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(pushrod_${name} STATIC ${ARG_SOURCES})
  add_library(pushrod::${name} ALIAS pushrod_${name})
  set_target_properties(pushrod_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(pushrod_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_include_directories(pushrod_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_features(pushrod_${name} PUBLIC cxx_std_20)
  target_link_libraries(pushrod_${name} PUBLIC ${ARG_LINK}
    PRIVATE ${ARG_PRIVATE_LINK} $<BUILD_INTERFACE:pushrod_build_flags>)
  pushrod_use_precompiled(pushrod_${name} pushrod_precompiled_library)
endfunction()

# pushrod_test(NAME LABEL unit SOURCES ... LINK ... TIMEOUT 60): a GoogleTest program and its CTest
# entries. Every entry has one label and a time limit.
function(pushrod_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  math(EXPR limit "${ARG_TIMEOUT} * ${PUSHROD_TEST_SLOW}")
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main
    pushrod_build_flags)
  pushrod_use_precompiled(${name} pushrod_precompiled_test)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${limit})
endfunction()
