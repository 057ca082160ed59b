// Experiment `linear-speed`: the time of each operation of a linear layer, by kind and size
// (Appendix B and Figures 6, 7, 8 and 10 of [SwitchBack]).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"
#include "numsim/linear/linear.h"

namespace numsim::experiments {

Experiment LinearSpeed();

// The parts below are shared between this experiment's files and its tests.
namespace linear_speed {

inline constexpr std::string_view kOperationsTable = "operations";
inline constexpr std::string_view kLayersTable = "layers";
inline constexpr std::string_view kCrossingsTable = "crossings";
inline constexpr std::string_view kStandard = "standard";

// What an operation is counted as.
enum class Part : uint8_t {
  kProduct,   // one of the three; dequantising is part of its store
  kQuantize,  // of an operand of a product
  kConvert,   // of what is kept for the backward pass: rounding to it, and back
  kOther,     // the rest of a pass, see the column `part`
};
inline constexpr Part kParts[] = {Part::kProduct, Part::kQuantize, Part::kConvert, Part::kOther};
std::string_view ToString(Part part);  // product, quantize, convert, other
Part ParsePart(std::string_view text);
Part PartOf(LinearOp step);

inline constexpr size_t kSteps = static_cast<size_t>(LinearOp::kKeepX) + 1;

// A layer that is timed.
struct TimedLayer {
  std::string format;   // of quantised operands; that of the high precision under kind standard
  std::string product;  // rule of the products in high precision
  LinearRecipe recipe;
};

// Every layer of a point, in the order of the rows. Throws Error naming the option at fault.
std::vector<TimedLayer> TimedLayers(const Settings& settings);

Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
// The rows of crossings.csv from a finished layers.csv.
void DeriveCrossings(const Table& layers, Table& crossings);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
Summary Summarise(const Settings& settings, const Tables& tables);

// What names a layer in both tables, and where it was timed.
struct LayerKey {
  std::string device, backend, threads, library, kind, format, high_precision, product, width;

  friend auto operator<=>(const LayerKey&, const LayerKey&) = default;

  // The standard layer that it is compared with: everything else equal.
  LayerKey Standard() const;
};
LayerKey KeyOf(const Table& table, size_t row);
// The cells of `key` in the order of the columns.
std::vector<std::string> KeyCells(const LayerKey& key);

// The different layers of a table, in order of appearance.
std::vector<LayerKey> LayerKeys(const Table& table);

// The kind, and what else sets `key` apart from the others, the rule of products in parentheses:
// "switchback int8 (library)"; the width as "x4".
std::string Label(const LayerKey& key, std::span<const LayerKey> all);

// The numbers of tokens, ascending, as the tables have them.
std::vector<std::string> TokenTexts(const Settings& settings);

// The number of tokens of figures that show one: 65536, that of the goals, else the greatest.
std::string FigureTokens(const Settings& settings);

// The layer that claims and the figure of single operations are about: the first switchback, else
// the first that is not standard, else the first; of its rules of products the one under which
// `standard` took the least time over all sizes. Requires rows of layers.csv.
LayerKey Subject(const Table& layers);

// A column of layers.csv over the dimensions, ascending; empty where the layer was not timed with
// that number of tokens.
struct Curve {
  std::vector<double> dim, value;
};
// The value at `dim`; NaN where there is none.
double ValueAt(const Curve& curve, double dim);
Curve CurveOf(const Table& layers,
              const LayerKey& key,
              std::string_view tokens,
              std::string_view column);

// Seconds of one operation of operations.csv over the dimensions, mean over both directions and all
// seeds.
Curve OperationCurve(const Table& operations,
                     const LayerKey& key,
                     std::string_view tokens,
                     std::string_view operation);

// From which size on a layer saves time, and keeps saving it at every greater size that was timed:
// the smallest such size, the place between it and the one before where a line through both (in the
// logarithm of the size) has no saving, and whether the smallest size of all saves already.
// `size` is NaN where the greatest does not save. Requires ascending sizes.
struct Crossing {
  double size, between;
  bool always;
};
Crossing FindCrossing(std::span<const double> sizes, std::span<const double> saved_percent);

// What this project set out to reach on an H200, with what was measured; nothing on a processor.
std::vector<Claim> Goals(const Table& layers);
// crossings.csv as text; "" on a processor.
std::string CrossingNotes(const Table& crossings);

}  // namespace linear_speed
}  // namespace numsim::experiments
