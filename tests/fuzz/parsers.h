// Everything of numsim that reads bytes from outside, for fuzzing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numsim::fuzz {

struct Parser {
  std::string_view name;
  // Gives the bytes to the parser. Returns normally also if it refuses them with Error. Aborts if what
  // it accepts does not survive being written and read again; any other exception leaves it.
  void (*parse)(std::string_view bytes);
  // Returns valid inputs, from which a fuzzer starts.
  std::vector<std::string> (*seeds)();
};

std::span<const Parser> Parsers();

}  // namespace numsim::fuzz
