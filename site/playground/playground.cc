// The calls of the playground: `numsim inspect` in a browser, compiled to WebAssembly by site/playground/build.
#include <exception>
#include <string>

#include "apps/inspection.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/format_table.h"

namespace {

std::string answer;  // of the last call; its text lives until the next one

// Returns the text of an inspection by `show`, or "error: " and the reason.
const char* Answer(const char* format,
                   const char* value,
                   int random_bits,
                   std::string (*show)(const numsim::apps::Inspection&)) {
  try {
    if (random_bits < 1 || random_bits > 32) throw numsim::Error("random bits: from 1 to 32");
    numsim::SetUserInterface(numsim::UserInterface::kProgram);
    answer = show(numsim::apps::Inspect(numsim::ParseFormat(format), value, random_bits));
  } catch (const std::exception& error) {
    answer = std::string("error: ") + error.what();
  }
  return answer.c_str();
}

}  // namespace

extern "C" {

// Returns what `numsim inspect FORMAT VALUE --sr-bits N --json` prints.
const char* numsim_playground_json(const char* format, const char* value, int random_bits) {
  return Answer(format, value, random_bits, numsim::apps::InspectionJson);
}

// Returns what `numsim inspect FORMAT VALUE --sr-bits N` prints.
const char* numsim_playground_text(const char* format, const char* value, int random_bits) {
  return Answer(format, value, random_bits, numsim::apps::InspectionText);
}
}
