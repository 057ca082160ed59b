#include "apps/operation_options.h"

#include <fmt/format.h>

#include "numsim/oracle/operation.h"

namespace numsim::apps {
namespace {

std::string OperationNames() {
  std::string names;
  for (const OperationInfo& info : OperationTable()) {
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  }
  return names;
}

// Names and formats of columns, runs of numbered ones ("a[0]" to "a[31]") as one.
std::string ColumnsText(const std::vector<Column>& columns) {
  std::string text;
  for (const Column& column : columns) {
    const size_t bracket = column.name.find('[');
    if (bracket != std::string::npos && column.name.substr(bracket) != "[0]") continue;
    const std::string type =
        column.format ? column.format->name : fmt::format("{} bits", column.bits);
    text += fmt::format("{}{}{} {}",
                        text.empty() ? "" : ", ",
                        column.name.substr(0, bracket),
                        bracket == std::string::npos ? "" : "[]",
                        type);
  }
  return text;
}

}  // namespace

void AddOperationOptions(CLI::App* sub, OperationOptions& options) {
  OperationRequest& named = options.named;
  options.sub = sub;
  sub->add_option("--op", named.op, "Operation: " + OperationNames())->required();
  sub->add_option("--format", named.format, "Format of the operands");
  sub->add_option("--format-b", named.format_b, "Format of the second operand, if another");
  sub->add_option("--format-c", named.format_c, "Format of the third operand, if another");
  sub->add_option("--to", named.to, "Format of the result, if another");
  sub->add_option(
      "--scale-format", named.scale_format, "Format of the scales of scaled operations");
  sub->add_option("--accumulator",
                  named.accumulation,
                  "Accumulator of dot: exact, FORMAT, FORMAT:unfused, fp64, fp32-chunked:N, "
                  "trunc:F,CHUNK[,PROMOTE] or a name of `numsim oracle accumulators`");
  sub->add_option("--length", named.length, "Elements of a block or of a dot product")
      ->check(CLI::PositiveNumber);
  sub->add_flag("--tensor-scale", named.tensor_scale, "quantize-nvfp4: a scale of the tensor too");
  AddRoundingOptions(sub, options.rounding, "nonsaturate");
  sub->get_option("--overflow")->default_str("");  // the default depends on the operation
  sub->remove_option(sub->get_option("--seed"));
  sub->add_option("--tininess", options.tininess, "Tininess of the underflow flag: after, before");
}

OperationRequest OperationOptions::Request() const {
  OperationRequest request = named;
  if (sub->count("--rounding") + sub->count("--sr-bits") + sub->count("--sr-variant") > 0) {
    request.rounding = rounding.ParsedRounding();
  }
  if (sub->count("--overflow") > 0) request.overflow = rounding.ParsedOverflow();
  if (sub->count("--tininess") > 0) {
    request.tininess = ParseTininess(tininess);
  }
  return request;
}

std::string OperationText(const Operation& operation) {
  return fmt::format("{}: {} -> {}",
                     operation.info().name,
                     ColumnsText(operation.inputs()),
                     ColumnsText(operation.results()));
}

}  // namespace numsim::apps
