// Derives layers.csv of `linear-speed` and reads values for figures and summary from the tables.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>

#include "experiments/linear_speed/linear_speed.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/error.h"

namespace numsim::experiments::linear_speed {
namespace {

// The members of a LayerKey in the order of the columns.
constexpr std::pair<std::string_view, std::string LayerKey::*> kKeyColumns[] = {
    {"device", &LayerKey::device},
    {"backend", &LayerKey::backend},
    {"threads", &LayerKey::threads},
    {"library", &LayerKey::library},
    {"kind", &LayerKey::kind},
    {"format", &LayerKey::format},
    {"high_precision", &LayerKey::high_precision},
    {"product", &LayerKey::product},
    {"width", &LayerKey::width},
};

// A layer at one size: sums over both directions and all seeds.
struct SizedLayer {
  LayerKey key;
  std::string dim, tokens;
  double seconds[std::size(kParts)] = {};  // by Part
  double kept_bytes = 0;
  size_t passes = 0;  // number of directions times seeds

  double Total() const {
    double total = 0;
    for (const double part : seconds) total += part;
    return total;
  }
};

using Place = std::tuple<LayerKey, std::string, std::string>;

// Returns the sums by layer and size, in order of appearance.
std::vector<SizedLayer> SumOperations(const Table& operations) {
  std::vector<SizedLayer> layers;
  std::map<Place, size_t> places;
  for (size_t r = 0; r < operations.rows.size(); ++r) {
    const LayerKey key = KeyOf(operations, r);
    const std::string& dim = operations.Text(r, "dim");
    const std::string& tokens = operations.Text(r, "tokens");
    const auto [place, is_new] = places.try_emplace({key, dim, tokens}, layers.size());
    if (is_new) layers.push_back({key, dim, tokens});
    SizedLayer& layer = layers[place->second];
    const Part part = ParsePart(operations.Text(r, "part"));
    layer.seconds[static_cast<size_t>(part)] += operations.Number(r, "seconds");
    if (part != Part::kOther) continue;
    // Every pass has exactly one row of part `other`.
    ++layer.passes;
    layer.kept_bytes += operations.Number(r, "kept_bytes");
  }
  return layers;
}

double StandardSeconds(const std::vector<SizedLayer>& layers, const SizedLayer& of) {
  const LayerKey key = of.key.Standard();
  for (const SizedLayer& layer : layers) {
    if (layer.key == key && layer.dim == of.dim && layer.tokens == of.tokens) {
      return layer.Total() / static_cast<double>(layer.passes);
    }
  }
  return kNaN;
}

// Returns the seconds of a layer over all sizes; infinite if it was not timed.
double TotalSeconds(const Table& layers, const LayerKey& key) {
  double total = 0;
  for (size_t r = 0; r < layers.rows.size(); ++r) {
    if (KeyOf(layers, r) == key) total += layers.Number(r, "seconds");
  }
  return total > 0 ? total : std::numeric_limits<double>::infinity();
}

// Returns the mean of `column` by dim over the rows that `include` accepts.
template <typename Include>
Curve MeanByDim(const Table& table, std::string_view column, const Include& include) {
  std::map<double, std::pair<double, double>> sums;  // sum and count by dim
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (!include(r)) continue;
    auto& [sum, count] = sums[table.Number(r, "dim")];
    sum += table.Number(r, column);
    count += 1;
  }
  Curve curve;
  for (const auto& [dim, sum] : sums) {
    curve.dim.push_back(dim);
    curve.value.push_back(sum.first / sum.second);
  }
  return curve;
}

}  // namespace

LayerKey LayerKey::Standard() const {
  LayerKey standard = *this;
  standard.kind = kStandard;
  standard.format = high_precision;
  return standard;
}

LayerKey KeyOf(const Table& table, size_t row) {
  LayerKey key;
  for (const auto& [column, member] : kKeyColumns) key.*member = table.Text(row, column);
  return key;
}

std::vector<std::string> KeyCells(const LayerKey& key) {
  std::vector<std::string> cells;
  for (const auto& column : kKeyColumns) cells.push_back(key.*column.second);
  return cells;
}

std::vector<LayerKey> LayerKeys(const Table& table) {
  std::vector<LayerKey> keys;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const LayerKey key = KeyOf(table, r);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

std::string Label(const LayerKey& key, std::span<const LayerKey> all) {
  std::string label = key.kind;
  for (const auto& column : kKeyColumns) {
    const auto member = column.second;
    const auto differs = [&](const LayerKey& other) { return other.*member != key.*member; };
    if (member == &LayerKey::kind || std::none_of(all.begin(), all.end(), differs)) continue;
    if (member == &LayerKey::product) {
      label += " (" + key.product + ")";
    } else {
      label += (member == &LayerKey::width ? " x" : " ") + key.*member;
    }
  }
  return label;
}

std::vector<std::string> TokenTexts(const Settings& settings) {
  std::vector<int64_t> tokens = settings.GetIntegers("tokens", 1, 1 << 20);
  std::sort(tokens.begin(), tokens.end());
  std::vector<std::string> texts;
  for (const int64_t count : tokens) texts.push_back(std::to_string(count));
  return texts;
}

std::string FigureTokens(const Settings& settings) {
  const std::vector<std::string> tokens = TokenTexts(settings);
  const auto goal = std::find(tokens.begin(), tokens.end(), "65536");
  return goal != tokens.end() ? *goal : tokens.back();
}

LayerKey Subject(const Table& layers) {
  const std::vector<LayerKey> keys = LayerKeys(layers);
  NUMSIM_CHECK(!keys.empty(), "no layers");
  const auto is_switchback = [](const LayerKey& key) { return key.kind == "switchback"; };
  const auto is_compared = [](const LayerKey& key) { return key.kind != kStandard; };
  auto first = std::find_if(keys.begin(), keys.end(), is_switchback);
  if (first == keys.end()) first = std::find_if(keys.begin(), keys.end(), is_compared);
  if (first == keys.end()) first = keys.begin();
  LayerKey subject = *first;
  for (const LayerKey& key : keys) {
    LayerKey same = key;
    same.product = subject.product;
    if (same != subject) continue;
    if (TotalSeconds(layers, key.Standard()) < TotalSeconds(layers, subject.Standard())) {
      subject = key;
    }
  }
  return subject;
}

Curve CurveOf(const Table& layers,
              const LayerKey& key,
              std::string_view tokens,
              std::string_view column) {
  return MeanByDim(layers, column, [&](size_t r) {
    return layers.Text(r, "tokens") == tokens && KeyOf(layers, r) == key;
  });
}

double ValueAt(const Curve& curve, double dim) {
  const auto found = std::find(curve.dim.begin(), curve.dim.end(), dim);
  return found == curve.dim.end() ? kNaN
                                  : curve.value[static_cast<size_t>(found - curve.dim.begin())];
}

Curve OperationCurve(const Table& operations,
                     const LayerKey& key,
                     std::string_view tokens,
                     std::string_view operation) {
  return MeanByDim(operations, "seconds", [&](size_t r) {
    return operations.Text(r, "operation") == operation && operations.Text(r, "tokens") == tokens &&
           KeyOf(operations, r) == key;
  });
}

void Derive(const Settings&, Tables& tables) {
  const std::vector<SizedLayer> layers = SumOperations(tables.at(std::string(kOperationsTable)));
  Table& table = tables.at(std::string(kLayersTable));
  for (const SizedLayer& layer : layers) {
    const double passes = static_cast<double>(layer.passes);
    const double seconds = layer.Total() / passes;
    const double standard = StandardSeconds(layers, layer);
    std::vector<std::string> cells = KeyCells(layer.key);
    cells.insert(cells.end(), {layer.dim, layer.tokens, FormatCell(seconds)});
    for (const Part part : kParts) {
      cells.push_back(FormatCell(layer.seconds[static_cast<size_t>(part)] / layer.Total()));
    }
    cells.insert(cells.end(),
                 {FormatCell(100 * (1 - seconds / standard)),
                  FormatCell(standard / seconds),
                  FormatCell(layer.kept_bytes / passes)});
    table.rows.push_back(std::move(cells));
  }
  DeriveCrossings(table, tables.at(std::string(kCrossingsTable)));
}

}  // namespace numsim::experiments::linear_speed
