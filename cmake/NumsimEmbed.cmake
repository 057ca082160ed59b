# numsim_embed_files(HEADER NAMESPACE NAME CONSTANT NAME FILES PATTERN NAMES NAME...): generates
# generated/HEADER, whose CONSTANT has each NAME with the text of a file. Its path is PATTERN with the name
# in place of %. A file that changes configures the build again.
function(numsim_embed_files header)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAMESPACE;CONSTANT;FILES" "NAMES")
  set(entries)
  foreach(name IN LISTS arg_NAMES)
    string(REPLACE "%" "${name}" file "${arg_FILES}")
    file(READ "${file}" text)
    string(APPEND entries "    {\"${name}\"sv, R\"numsim-file(${text})numsim-file\"sv},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  endforeach()
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embedded_files.h.in" "generated/${header}" @ONLY)
endfunction()
