#include "numsim/data/internal/generate_text.h"

#include "numsim/base/elementary.h"

namespace numsim {
namespace {

constexpr uint64_t kFirstTextStream = 2;  // the streams before it generate words and tables

}  // namespace

GeneratedText GenerateText(const TextModel& model, uint64_t seed, uint64_t part, size_t bytes) {
  DrawStream draws({DeriveSeed(seed, RandomPurpose::kText), kFirstTextStream + part});
  GeneratedText result;
  result.text.reserve(bytes + 64);
  TextState state = TextModel::Start();
  double nats = 0;
  for (;;) {
    // At the end of a whole sentence, where the text reveals every choice made so far.
    if (result.text.size() <= bytes && state.Top() == TextSymbol::kRest) result.nats = nats;
    if (result.text.size() >= bytes) break;
    const size_t choice = model.Draw(state, draws);
    const double probability = model.Probability(state, choice);
    if (probability < 1) nats -= Log(probability);
    model.Take(state, choice, result.text);
  }
  result.text.resize(bytes);
  return result;
}

}  // namespace numsim
