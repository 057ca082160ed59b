// The probability of a text under TextModel, found from its bytes alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "numsim/data/internal/text_model.h"

namespace numsim {

// Follows all derivations whose text begins like the one given, so it knows nothing of how the text
// was made. The probability is their sum, whether there is one or many.
class TextOracle {
 public:
  explicit TextOracle(const TextModel& model) : model_(model) {
    for (uint32_t name = 0; name < kNames; ++name) names_.emplace(NameText(name), name);
  }

  // -ln of the probability that a text begins so; requires a text that is not empty. `most`
  // receives the largest number of derivations that were open at a time. Infinity when these are
  // more than 4096.
  double Nats(std::string_view text, size_t* most = nullptr) const {
    std::multimap<size_t, Partial> open;  // by the bytes that they have made
    open.emplace(0, Partial{TextModel::Start(), 0});
    std::vector<double> whole;  // nats of derivations that made all of the text
    while (!open.empty()) {
      if (most != nullptr) *most = std::max(*most, open.size());
      if (open.size() > 4096) return std::numeric_limits<double>::infinity();
      const auto first = open.begin();
      const size_t place = first->first;
      const Partial partial = first->second;
      open.erase(first);
      Follow(text, place, partial, open, whole);
    }
    const double least = *std::min_element(whole.begin(), whole.end());
    double sum = 0;
    for (const double nats : whole) sum += std::exp(least - nats);
    return least - std::log(sum);
  }

 private:
  struct Partial {
    TextState state;
    double nats;
  };

  void Follow(std::string_view text,
              size_t place,
              const Partial& partial,
              std::multimap<size_t, Partial>& open,
              std::vector<double>& whole) const {
    const auto follow = [&](size_t alternative) {
      Partial next = partial;
      std::string unit;
      model_.Take(next.state, alternative, unit);
      const size_t compared = std::min(unit.size(), text.size() - place);
      if (text.compare(place, compared, unit, 0, compared) != 0) return;
      next.nats -= std::log(model_.Probability(partial.state, alternative));
      if (place + unit.size() < text.size()) {
        open.emplace(place + unit.size(), std::move(next));
      } else {
        whole.push_back(next.nats);
      }
    };
    const size_t alternatives = model_.Alternatives(partial.state);
    if (alternatives == kNames && place + 8 <= text.size()) {
      // Names are found in a table: trying them all takes too long.
      const auto found = names_.find(std::string(text.substr(place + partial.state.space, 6)));
      if (found != names_.end()) follow(found->second);
      return;
    }
    for (size_t i = 0; i < alternatives; ++i) follow(i);
  }

  const TextModel& model_;
  std::unordered_map<std::string, uint32_t> names_;
};

}  // namespace numsim
