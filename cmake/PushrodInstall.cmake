# SPDX-License-Identifier: Apache-2.0
# The umbrella target pushrod::pushrod, and what is installed: it, the libraries it needs, the public
# headers, the package file and the command. Private folders' headers are not installed.
include(CMakePackageConfigHelpers)

set(PUSHROD_PUBLIC_HEADERS
  agreement.h config.h coordinator.h data_plane.h deadline.h engine_client.h executor.h log_sink.h
  phase.h pushrod.h rank.h rank_link.h report.h result.h status.h tensor.h weight_source.h)
list(TRANSFORM PUSHROD_PUBLIC_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/pushrod/)
list(APPEND PUSHROD_PUBLIC_HEADERS ${PROJECT_BINARY_DIR}/include/pushrod/version.h)

add_library(pushrod_pushrod INTERFACE)
add_library(pushrod::pushrod ALIAS pushrod_pushrod)
set_target_properties(pushrod_pushrod PROPERTIES EXPORT_NAME pushrod)
target_sources(pushrod_pushrod INTERFACE FILE_SET HEADERS
  BASE_DIRS ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include
  FILES ${PUSHROD_PUBLIC_HEADERS})
target_compile_features(pushrod_pushrod INTERFACE cxx_std_20)
# The facade brings every other library with it.
if(TARGET pushrod_orchestrator)
  target_link_libraries(pushrod_pushrod INTERFACE pushrod::orchestrator)
else()
  target_link_libraries(pushrod_pushrod INTERFACE pushrod::config)
endif()

# pushrod_library_closure(RESULT TARGET): our own libraries that TARGET links, itself first.
function(pushrod_library_closure result target)
  set(found "")
  set(open ${target})
  while(open)
    list(POP_FRONT open next)
    list(APPEND found ${next})
    foreach(property IN ITEMS LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(links ${next} ${property})
      foreach(link IN LISTS links)
        if(NOT link MATCHES "^pushrod::" OR NOT TARGET ${link})
          continue()
        endif()
        get_target_property(real ${link} ALIASED_TARGET)
        if(NOT real IN_LIST found AND NOT real IN_LIST open)
          list(APPEND open ${real})
        endif()
      endforeach()
    endforeach()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

pushrod_library_closure(installed_libraries pushrod_pushrod)
set(PUSHROD_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/pushrod)
install(TARGETS ${installed_libraries} EXPORT pushrodTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT pushrodTargets NAMESPACE pushrod:: DESTINATION ${PUSHROD_PACKAGE_DIR})
foreach(command IN ITEMS pushrod pushrod_program)
  if(TARGET ${command})
    install(TARGETS ${command} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/pushrodConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/pushrodConfig.cmake
  INSTALL_DESTINATION ${PUSHROD_PACKAGE_DIR})
# Before 1.0 a minor release may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/pushrodConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/cmake/pushrodConfig.cmake
  ${PROJECT_BINARY_DIR}/cmake/pushrodConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/PushrodImports.cmake
  DESTINATION ${PUSHROD_PACKAGE_DIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
