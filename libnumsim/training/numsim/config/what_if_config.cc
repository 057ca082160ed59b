#include "numsim/config/what_if_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/config/internal/rounding_text.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/rounding/rounding_modes.h"

namespace numsim {
namespace {

constexpr std::string_view kDelayed = "delayed";
constexpr std::string_view kScalings = "tensor, row, column, block:N, tile:ROWSxCOLS, delayed";
constexpr std::string_view kDelayedOptions = "history:N, max, most-recent, margin:N";
constexpr std::string_view kHistory = "history:", kMargin = "margin:";
constexpr int kLargestHistory = 65536,
              kLargestMargin = 32;  // as of linear.delayed_history, _margin

std::vector<std::string> Words(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string> words;
  for (size_t begin = text.find_first_not_of(kBlanks); begin != text.npos;) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

Format ParseSignedFormat(const std::string& word) {
  Format format = ParseFormat(word);
  if (!format.spec.IsSigned() || format.spec.zero == Zero::kNone) {
    throw Error::Format("format '{}' has no sign or no zero", word);
  }
  return format;
}

ScaleLayout ParseLayout(const std::string& word) {
  try {
    return ParseScaleLayout(word);
  } catch (const Error&) {
    throw NotOneOf("scaling", word, kScalings);
  }
}

int ParseNumber(const std::string& word, std::string_view prefix, int low, int high) {
  int number = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data() + prefix.size(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number < low || number > high) {
    throw Error::Format(
        "option '{}' is not {}N with a whole number from {} to {}", word, prefix, low, high);
  }
  return number;
}

// An option of a recipe: whether a word is one, and what it sets. At most one word of a recipe may
// be each option.
struct Option {
  std::string_view what;
  std::function<bool(const std::string&)> is;
  std::function<void(WhatIfRecipe&, const std::string&)> set;
  bool given = false;
};

bool IsName(std::string_view word, std::string_view list) {
  const std::string among = fmt::format(", {}, ", list);
  return among.find(fmt::format(", {}, ", word)) != std::string::npos;
}

bool IsRounding(const std::string& word) {
  const std::string mode = word.substr(0, word.find(':'));
  return std::any_of(std::begin(kRoundingModes),
                     std::end(kRoundingModes),
                     [&](const RoundingModeRow& row) { return row.name == mode; });
}

Option RoundingOption() {
  return {"rounding mode", IsRounding, [](WhatIfRecipe& recipe, const std::string& word) {
            recipe.rounding = ParseRounding(word);
          }};
}

std::vector<Option> CurrentOptions() {
  return {{"scale rule",
           [](const std::string& word) { return IsName(word, ScaleRuleNames()); },
           [](WhatIfRecipe& recipe, const std::string& word) {
             recipe.scale_rule = ParseScaleRule(word);
           }},
          RoundingOption()};
}

std::vector<Option> DelayedOptions() {
  return {{"history",
           [](const std::string& word) { return word.starts_with(kHistory); },
           [](WhatIfRecipe& recipe, const std::string& word) {
             recipe.delayed->history =
                 static_cast<size_t>(ParseNumber(word, kHistory, 1, kLargestHistory));
           }},
          {"algorithm",
           [](const std::string& word) { return word == "max" || word == "most-recent"; },
           [](WhatIfRecipe& recipe, const std::string& word) {
             recipe.delayed->algorithm = ParseAmaxAlgorithm(word);
           }},
          {"margin",
           [](const std::string& word) { return word.starts_with(kMargin); },
           [](WhatIfRecipe& recipe, const std::string& word) {
             recipe.delayed->margin = ParseNumber(word, kMargin, -kLargestMargin, kLargestMargin);
           }},
          RoundingOption()};
}

void SetOption(const std::string& word, std::vector<Option>& options, WhatIfRecipe& recipe) {
  for (Option& option : options) {
    if (!option.is(word)) continue;
    if (option.given) throw Error::Format("'{}' is a second {}", word, option.what);
    option.given = true;
    option.set(recipe, word);
    return;
  }
  const std::string own =
      recipe.delayed.has_value() ? std::string(kDelayedOptions) : ScaleRuleNames();
  throw NotOneOf("option", word, fmt::format("{}, {}", own, RoundingTexts()));
}

WhatIfRecipe ParseWords(const std::vector<std::string>& words) {
  WhatIfRecipe recipe;
  if (words.size() < 2) {
    throw Error("expected FORMAT SCALING OPTION..., for example e4m3fn tensor");
  }
  recipe.format = ParseSignedFormat(words[0]);
  recipe.scale_rule = UsualScaleRule(recipe.format.spec);
  if (words[1] == kDelayed) {
    recipe.delayed.emplace();
  } else {
    recipe.layout = ParseLayout(words[1]);
  }
  std::vector<Option> options = recipe.delayed.has_value() ? DelayedOptions() : CurrentOptions();
  for (size_t i = 2; i < words.size(); ++i) SetOption(words[i], options, recipe);
  return recipe;
}

std::string DelayedText(const DelayedScalingOptions& delayed) {
  const DelayedScalingOptions usual;
  std::string text(kDelayed);
  if (delayed.history != usual.history) text += fmt::format(" {}{}", kHistory, delayed.history);
  if (delayed.algorithm != usual.algorithm) text += fmt::format(" {}", ToString(delayed.algorithm));
  if (delayed.margin != usual.margin) text += fmt::format(" {}{}", kMargin, delayed.margin);
  return text;
}

}  // namespace

WhatIfRecipe ParseWhatIfRecipe(std::string_view text) {
  try {
    return ParseWords(Words(text));
  } catch (const Error& error) {
    throw Error::Format("recipe '{}': {}", text, error.what());
  }
}

std::string ToString(const WhatIfRecipe& recipe) {
  std::string text = recipe.format.name + " ";
  if (recipe.delayed.has_value()) {
    text += DelayedText(*recipe.delayed);
  } else {
    text += ToString(recipe.layout);
    if (recipe.scale_rule != UsualScaleRule(recipe.format.spec)) {
      text += fmt::format(" {}", ToString(recipe.scale_rule));
    }
  }
  if (recipe.rounding != Rounding()) text += " " + RoundingText(recipe.rounding);
  return text;
}

void CheckWhatIfConfig(const WhatIfConfig& config) {
  if (config.every == 0) throw KeyError("what_if.every", "0 is below 1");
  if (!config.recipes.empty() && config.layers.empty()) {
    throw KeyError("what_if.layers", "is empty, expected patterns of layers, or \"*\" for all");
  }
  std::vector<std::string> texts;
  for (const WhatIfRecipe& recipe : config.recipes) {
    std::string text = ToString(recipe);
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) {
      throw KeyError::Format("what_if.recipes", "recipe '{}' is given twice", text);
    }
    texts.push_back(std::move(text));
  }
}

}  // namespace numsim
