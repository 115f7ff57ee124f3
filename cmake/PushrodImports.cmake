# SPDX-License-Identifier: Apache-2.0
# Libraries that come without a CMake package, and one name for those whose packages differ between
# releases. Used by the build and, installed beside the package file, by consumers.
# PUSHROD_IMPORTS_MISSING lists what was not found.
set(PUSHROD_IMPORTS_MISSING "")

# yaml-cpp 0.7 exports "yaml-cpp", 0.8 "yaml-cpp::yaml-cpp".
if(TARGET yaml-cpp AND NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp INTERFACE IMPORTED)
  set_target_properties(yaml-cpp::yaml-cpp PROPERTIES INTERFACE_LINK_LIBRARIES yaml-cpp)
endif()

# _pushrod_import(TARGET LIBRARY HEADER FOLDERS...)
function(_pushrod_import target library header)
  if(TARGET ${target})
    return()
  endif()
  find_library(${target}_LIBRARY ${library})
  find_path(${target}_INCLUDE ${header} PATH_SUFFIXES ${ARGN})
  mark_as_advanced(${target}_LIBRARY ${target}_INCLUDE)
  if(NOT ${target}_LIBRARY OR NOT ${target}_INCLUDE)
    set(PUSHROD_IMPORTS_MISSING ${PUSHROD_IMPORTS_MISSING} ${library} PARENT_SCOPE)
    return()
  endif()
  add_library(${target} INTERFACE IMPORTED)
  set_target_properties(${target} PROPERTIES
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${${target}_INCLUDE}
    INTERFACE_INCLUDE_DIRECTORIES ${${target}_INCLUDE}
    INTERFACE_LINK_LIBRARIES ${${target}_LIBRARY})
endfunction()

_pushrod_import(pushrod_xxhash xxhash xxhash.h)
# Gloo's Redis store includes <hiredis.h> and leaves linking to its user.
_pushrod_import(pushrod_hiredis hiredis hiredis.h hiredis)
