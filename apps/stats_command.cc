// `numsim stats`: measures the quantisation error of the tensors in a file.
#include <fmt/format.h>

#include "apps/code_array.h"
#include "apps/command.h"
#include "apps/format_text.h"
#include "apps/rounding_options.h"
#include "apps/stats_table.h"
#include "numsim/base/split_list.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/csv.h"
#include "numsim/io/tensor_file.h"
#include "numsim/quantize/quantize_float64.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim::apps {
namespace {

struct StatsOptions {
  std::string file;
  std::string formats = "e4m3fn,e5m2,bf16,int8";
  std::string granularity = "tensor";
  std::string sort = "file";
  std::string scale = "usual";
  std::string tensor;
  std::string csv;
  RoundingOptions rounding;
};

std::vector<ScaleLayout> ParseLayouts(const std::string& list) {
  std::vector<ScaleLayout> layouts;
  for (const std::string& text : SplitList(list)) layouts.push_back(ParseScaleLayout(text));
  return layouts;
}

// Adds the rows of one tensor, whose elements are `values`: for each granularity, a row per format.
template <typename Value>
void AddRows(Table& table,
             const TensorInfo& tensor,
             const Array& array,
             std::span<const Value> values,
             const std::vector<Format>& formats,
             const std::vector<ScaleLayout>& layouts,
             QuantizeOptions quantize,
             bool usual) {
  const MatrixShape shape = AsMatrix(array.shape);
  for (const ScaleLayout& layout : layouts) {
    quantize.layout = layout;
    for (const Format& format : formats) {
      quantize.format = format.spec;
      if (usual) quantize.scale_rule = UsualScaleRule(format.spec);
      const auto errors = QuantizationError(values, shape, quantize);
      AddStatsRow(table, tensor, array, format, quantize, MeasuresOf(errors));
    }
  }
}

// Adds the rows of one tensor. float64 is rounded and measured as it is, everything else as float32,
// which holds it.
void AddTensor(Table& table,
               const TensorFile& file,
               const TensorInfo& tensor,
               const std::vector<Format>& formats,
               const std::vector<ScaleLayout>& layouts,
               const QuantizeOptions& quantize,
               bool usual) {
  const Array array = file.Read(tensor.name);
  const auto add = [&](const auto& values) {
    AddRows(table, tensor, array, std::span(values), formats, layouts, quantize, usual);
  };
  try {
    if (array.type == ElementType::kF64) return add(ToFloat64(array, file.Describe(tensor)));
    add(ToFloat32(array, file.Describe(tensor)));
  } catch (const ScaleError& error) {
    throw Error::Format("{}: {}", file.Describe(tensor), error.what());
  }
}

void Print(const Table& table,
           const StatsOptions& options,
           const std::vector<Format>& formats,
           size_t granularities) {
  PrintStats(table, granularities);
  PrintWorstTensors(table, options.sort);
  fmt::print("\nrounding {}, overflow {}; * scaled by granularity {}, scale rule {}\n",
             options.rounding.mode,
             options.rounding.overflow,
             options.granularity,
             options.scale == "usual" ? "absmax" : options.scale);
  for (const Format& format : formats) {
    if (FormatNote(format.spec).empty()) continue;
    fmt::print("note: {}\n", FormatNote(format.spec));
    break;
  }
}

int Stats(const StatsOptions& options) {
  const std::vector<Format> formats = ParseFormatList(options.formats);
  const std::vector<ScaleLayout> layouts = ParseLayouts(options.granularity);
  QuantizeOptions quantize;
  quantize.rounding = options.rounding.ParsedRounding();
  quantize.overflow = options.rounding.ParsedOverflow();
  quantize.random = {{options.rounding.seed, 0}, 0};
  const bool usual = options.scale == "usual";
  if (!usual) quantize.scale_rule = ParseScaleRule(options.scale);

  CheckKeepsInputs("--csv", options.csv, {options.file});
  const TensorFile file(options.file);
  if (!options.tensor.empty()) file.Find(options.tensor);
  Table table = EmptyStatsTable();
  SortStats(table, options.sort);  // refuses a wrong order before the work
  for (const TensorInfo& tensor : file.Tensors()) {
    if (!options.tensor.empty() && tensor.name != options.tensor) continue;
    AddTensor(table, file, tensor, formats, layouts, quantize, usual);
  }
  SortStats(table, options.sort);
  if (options.csv == "-") {
    fmt::print("{}", ToCsv(table));
    return 0;
  }
  if (!options.csv.empty()) WriteCsv(options.csv, table);
  Print(table, options, formats, layouts.size());
  return 0;
}

}  // namespace

void AddStatsCommand(Program& program) {
  auto options = std::make_shared<StatsOptions>();
  CLI::App* sub = program.app.add_subcommand(
      "stats", "Measure the quantisation error of the tensors in a .npy or .safetensors file");
  sub->add_option("FILE", options->file, "Input .npy or .safetensors file")
      ->required()
      ->check(NotEmpty());
  sub->add_option("--format", options->formats, FormatHelp("Comma-separated list of formats"))
      ->capture_default_str();
  sub->add_option(
         "--granularity",
         options->granularity,
         "Comma-separated list of elements that share a scale: tensor, row, column, block:N "
         "or tile:ROWSxCOLS. The first dimension gives the rows; a vector is one row")
      ->capture_default_str();
  sub->add_option(
         "--scale",
         options->scale,
         "Scale rule: absmax, pow2-floor, pow2-ceil, e8m0, none, nvfp4, or usual (absmax for "
         "formats of up to 8 bits, else none)")
      ->capture_default_str();
  sub->add_option("--sort",
                  options->sort,
                  "Order of the rows: one of " + StatsOrders() + "; by a measure, the worst first")
      ->capture_default_str();
  sub->add_option("--tensor", options->tensor, "Measure only the tensor with this name");
  sub->add_option(
      "--csv", options->csv, "Also write the table to this CSV file; - prints only CSV");
  AddRoundingOptions(sub, options->rounding, "saturate");
  Example(sub,
          "numsim stats model.safetensors --format e4m3fn,int8 --granularity tensor,row "
          "--sort sqnr\n\nThe columns are defined in docs/stats.md.");
  Choose(program, sub, [options] { return Stats(*options); });
}

}  // namespace numsim::apps
