// A libFuzzer program for one parser, which the environment names:
//   NUMSIM_FUZZ_PARSER=npy numsim_fuzz CORPUS_FOLDER -max_total_time=60
//   numsim_fuzz --list                  prints the names
//   numsim_fuzz --write-corpus FOLDER   writes the seeds of each parser to FOLDER/NAME
// tests/tools/fuzz_campaign runs it for all parsers.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/parsers.h"

namespace {

namespace fs = std::filesystem;
using numsim::fuzz::Parser;
using numsim::fuzz::Parsers;

void WriteCorpus(const fs::path& folder) {
  for (const Parser& parser : Parsers()) {
    fs::create_directories(folder / parser.name);
    int number = 0;
    for (const std::string& seed : parser.seeds()) {
      std::ofstream(folder / parser.name / fmt::format("seed-{}", number++), std::ios::binary)
          << seed;
    }
  }
}

const Parser& ChosenParser() {
  const char* const name = std::getenv("NUMSIM_FUZZ_PARSER");
  const auto parsers = Parsers();
  const auto found = std::find_if(parsers.begin(), parsers.end(), [&](const Parser& parser) {
    return name != nullptr && parser.name == name;
  });
  if (found == parsers.end()) {
    fmt::print(stderr, "NUMSIM_FUZZ_PARSER: expected a name of numsim_fuzz --list\n");
    std::exit(2);
  }
  return *found;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const std::string_view first = *count > 1 ? (*arguments)[1] : "";
  if (first == "--list") {
    for (const Parser& parser : Parsers()) fmt::print("{}\n", parser.name);
    std::exit(0);
  }
  if (first == "--write-corpus" && *count > 2) {
    WriteCorpus((*arguments)[2]);
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Parser& parser = ChosenParser();
  parser.parse({reinterpret_cast<const char*>(data), size});
  return 0;
}
