# numsim_require_package(NAME DEBIAN PACKAGE [find_package arguments])
# Finds a package that numsim cannot be built without. What is missing is collected, so that
# numsim_report_missing_packages() names all of it at once with the command that installs it.
function(numsim_require_package name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DEBIAN" "")
  find_package(${name} QUIET ${arg_UNPARSED_ARGUMENTS})
  if(NOT ${name}_FOUND)
    set_property(GLOBAL APPEND PROPERTY numsim_missing_names "${name}")
    set_property(GLOBAL APPEND PROPERTY numsim_missing_debian "${arg_DEBIAN}")
  endif()
  set(${name}_VERSION "${${name}_VERSION}" PARENT_SCOPE)
endfunction()

function(numsim_report_missing_packages)
  get_property(names GLOBAL PROPERTY numsim_missing_names)
  if(NOT names)
    return()
  endif()
  get_property(debian GLOBAL PROPERTY numsim_missing_debian)
  list(REMOVE_DUPLICATES debian)
  list(JOIN names ", " names)
  list(JOIN debian " " debian)
  message(FATAL_ERROR
    "numsim needs packages that were not found: ${names}\n"
    "On Debian 12 or newer:\n"
    "  sudo apt-get install ${debian}\n"
    "or everything at once: .ci/install-packages")
endfunction()
