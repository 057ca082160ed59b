#include "experiments/claims/run_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/claims/parse.h"
#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/base/split_list.h"

namespace numsim::experiments {
const std::string& Settings::Get(std::string_view name) const {
  const auto found = options.find(std::string(name));
  NUMSIM_CHECK(found != options.end(), "the experiment declares no option {}", name);
  return found->second;
}

int64_t Settings::GetInteger(std::string_view name, int64_t low, int64_t high) const {
  const std::string& text = Get(name);
  int64_t value = 0;
  if (!Parse(text, value) || value < low || value > high) {
    throw Error::Format("--{} \"{}\": expected an integer from {} to {}", name, text, low, high);
  }
  return value;
}

double Settings::GetDouble(std::string_view name, double low, double high) const {
  const std::string& text = Get(name);
  double value = 0;
  // The negated comparison rejects NaN.
  if (!Parse(text, value) || !(value >= low && value <= high)) {
    throw Error::Format("--{} \"{}\": expected a number from {} to {}", name, text, low, high);
  }
  return value;
}

bool Settings::GetYes(std::string_view name) const {
  const std::string& text = Get(name);
  if (text == "yes" || text == "no") return text == "yes";
  throw Error::Format("--{} '{}': expected yes or no", name, text);
}

std::vector<std::string> Settings::GetList(std::string_view name) const {
  const std::string& text = Get(name);
  std::vector<std::string> pieces = SplitList(text);
  if (std::find(pieces.begin(), pieces.end(), "") != pieces.end()) {
    throw Error::Format(
        "--{} \"{}\": expected a comma-separated list without empty elements", name, text);
  }
  return pieces;
}

std::vector<std::string> Settings::GetListOrNone(std::string_view name) const {
  return Get(name).empty() ? std::vector<std::string>() : GetList(name);
}

std::vector<int64_t> Settings::GetIntegers(std::string_view name, int64_t low, int64_t high) const {
  std::vector<int64_t> values;
  for (const std::string& text : GetList(name)) {
    int64_t value = 0;
    if (!Parse(text, value) || value < low || value > high) {
      throw Error::Format("--{} \"{}\": expected integers from {} to {}, separated by commas",
                          name,
                          text,
                          low,
                          high);
    }
    values.push_back(value);
  }
  return values;
}

std::string GivenRows::Text() const {
  constexpr size_t kDigits = 12;
  std::string text;
  for (const RowsFile& file : files) {
    text += fmt::format(
        "{}{} (SHA-256 {})", text.empty() ? "" : ", ", file.name, file.sha256.substr(0, kDigits));
  }
  return text;
}

}  // namespace numsim::experiments
