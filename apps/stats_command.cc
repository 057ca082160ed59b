// `numsim stats`: measures the quantisation error of the tensors in a file.
#include <fmt/format.h>

#include <algorithm>

#include "apps/code_array.h"
#include "apps/command.h"
#include "apps/rounding_options.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/csv.h"
#include "numsim/io/tensor_file.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim::apps {
namespace {

struct StatsOptions {
  std::string file;
  std::string formats = "e4m3fn,e5m2,bf16,int8";
  std::string granularity = "tensor";
  std::string scale = "usual";
  std::string tensor;
  std::string csv;
  RoundingOptions rounding;
};

std::string ShapeToString(const std::vector<size_t>& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

// Returns the elements as float32; float64 is rounded, as the help text states.
std::vector<float> Values(const Array& array, const std::string& what) {
  if (array.type != ElementType::kF64) return ToFloat32(array, what);
  const std::vector<double> wide = ToFloat64(array, what);
  std::vector<float> values(wide.size());
  std::transform(
      wide.begin(), wide.end(), values.begin(), [](double x) { return static_cast<float>(x); });
  return values;
}

Table EmptyTable() {
  return {{"tensor",
           "dtype",
           "shape",
           "elements",
           "nonfinite",
           "absmax",
           "format",
           "granularity",
           "scale",
           "sqnr_db",
           "relative_error",
           "max_error",
           "mean_error",
           "underflow_share",
           "overflow_share"},
          {}};
}

void AddRow(Table& table,
            const TensorInfo& tensor,
            const Array& array,
            const Format& format,
            const QuantizeOptions& options,
            const ErrorMeasures& e) {
  table.rows.push_back({tensor.name,
                        std::string(ToString(array.type)),
                        ShapeToString(array.shape),
                        FormatCell(uint64_t{e.elements}),
                        FormatCell(uint64_t{e.nonfinite}),
                        FormatCell(e.max_signal),
                        format.name,
                        ToString(options.layout),
                        std::string(ToString(options.scale_rule)),
                        FormatCell(e.SqnrDb()),
                        FormatCell(e.RelativeError()),
                        FormatCell(e.max_error),
                        FormatCell(e.MeanError()),
                        FormatCell(e.UnderflowShare()),
                        FormatCell(e.OverflowShare())});
}

void PrintTable(const Table& table) {
  fmt::print("{:<28} {:>14} {:>10} {:<12} {:>9} {:>11} {:>11} {:>10} {:>10}\n",
             "tensor",
             "shape",
             "absmax",
             "format",
             "SQNR dB",
             "rel. error",
             "max error",
             "underflow",
             "overflow");
  std::string last;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& name = table.Text(i, "tensor");
    const bool again = name == last;
    const bool cast = table.Text(i, "scale") == "none";
    fmt::print("{:<28} {:>14} {:>10} {:<12} {:>9.2f} {:>11.3e} {:>11.3e} {:>9.3f}% {:>9.3f}%\n",
               again ? "" : name,
               again ? "" : table.Text(i, "shape"),
               again ? "" : fmt::format("{:.4g}", table.Number(i, "absmax")),
               table.Text(i, "format") + (cast ? "" : "*"),
               table.Number(i, "sqnr_db"),
               table.Number(i, "relative_error"),
               table.Number(i, "max_error"),
               100 * table.Number(i, "underflow_share"),
               100 * table.Number(i, "overflow_share"));
    last = name;
  }
}

int Stats(const StatsOptions& options) {
  const std::vector<Format> formats = ParseFormatList(options.formats);
  QuantizeOptions quantize;
  quantize.rounding = options.rounding.ParsedRounding();
  quantize.overflow = options.rounding.ParsedOverflow();
  quantize.layout = ParseScaleLayout(options.granularity);
  quantize.random = {{options.rounding.seed, 0}, 0};
  const bool usual = options.scale == "usual";
  if (!usual) quantize.scale_rule = ParseScaleRule(options.scale);

  const TensorFile file(options.file);
  if (!options.tensor.empty()) file.Find(options.tensor);
  Table table = EmptyTable();
  for (const TensorInfo& tensor : file.Tensors()) {
    if (!options.tensor.empty() && tensor.name != options.tensor) continue;
    const Array array = file.Read(tensor.name);
    const std::vector<float> values = Values(array, file.Describe(tensor));
    for (const Format& format : formats) {
      quantize.format = format.spec;
      if (usual) quantize.scale_rule = UsualScaleRule(format.spec);
      const MatrixShape shape = AsMatrix(array.shape);
      AddRow(table, tensor, array, format, quantize, QuantizationError(values, shape, quantize));
    }
  }
  if (options.csv == "-") {
    fmt::print("{}", ToCsv(table));
    return 0;
  }
  if (!options.csv.empty()) WriteCsv(options.csv, table);
  PrintTable(table);
  fmt::print("\nrounding {}, overflow {}; * scaled by granularity {}, scale rule {}\n",
             options.rounding.mode,
             options.rounding.overflow,
             options.granularity,
             usual ? "absmax" : options.scale);
  return 0;
}

}  // namespace

void AddStatsCommand(Program& program) {
  auto options = std::make_shared<StatsOptions>();
  CLI::App* sub = program.app.add_subcommand(
      "stats", "Measure the quantisation error of the tensors in a .npy or .safetensors file");
  sub->add_option("FILE",
                  options->file,
                  "Input .npy or .safetensors file (float64 is rounded to float32 first)")
      ->required()
      ->check(NotEmpty());
  sub->add_option("--format", options->formats, "Comma-separated list of formats")
      ->capture_default_str();
  sub->add_option("--granularity",
                  options->granularity,
                  "Elements that share a scale: tensor, row, column, block:N or tile:ROWSxCOLS; "
                  "the first dimension gives the rows")
      ->capture_default_str();
  sub->add_option("--scale",
                  options->scale,
                  "Scale rule: absmax, pow2-floor, pow2-ceil, e8m0, none, or usual (absmax for "
                  "formats of up to 8 bits, else none)")
      ->capture_default_str();
  sub->add_option("--tensor", options->tensor, "Measure only the tensor with this name");
  sub->add_option(
      "--csv", options->csv, "Also write the table to this CSV file; - prints only CSV");
  AddRoundingOptions(sub, options->rounding, "saturate");
  Example(sub, "numsim stats model.safetensors --format e4m3fn,int8 --granularity row");
  Choose(program, sub, [options] { return Stats(*options); });
}

}  // namespace numsim::apps
