#include "apps/operation_options.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "numsim/base/error.h"
#include "numsim/oracle/operation.h"
#include "numsim/profiles/profile.h"

namespace numsim::apps {
namespace {

// Returns the names of the operations. Those of elementwise operations on P3109's blocks and scaled
// values are those on values with one word more.
std::string OperationNames() {
  std::string names;
  for (const OperationInfo& info : OperationTable()) {
    if (info.name.starts_with("p3109.Scaled")) break;
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  }
  return names +
         ", and of each from p3109.Convert to p3109.Clamp also p3109.ScaledConvert and "
         "p3109.BlockConvert";
}

// Returns the names and formats of columns; numbered columns ("a[0]" to "a[31]") are listed once,
// as "a[]".
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
  sub->add_option("--format",
                  named.format,
                  "Format of the operands; required except for convert and quantize-*, which "
                  "default to fp32");
  sub->add_option("--format-b", named.format_b, "Format of the second operand (default: --format)");
  sub->add_option("--format-c", named.format_c, "Format of the third operand (default: --to)");
  sub->add_option("--to",
                  named.to,
                  "Format of the result (default: --format; required for convert and quantize-mx)");
  sub->add_option("--scale-format",
                  named.scale_format,
                  "Format of scales of scaled-* and p3109.* (default: binary8p1uf); for dot, of "
                  "the block scales, e.g. e8m0fnu (MX) or e4m3fn (NVFP4; default: no scales)");
  sub->add_option("--accumulation-mode,--accumulator",
                  named.accumulation,
                  "Accumulation mode of dot (default: exact): exact, FORMAT, FORMAT:unfused, fp64, "
                  "fp32-chunked:N, trunc:F,CHUNK[,PROMOTE] or a name of `numsim oracle "
                  "accumulation-modes`");
  sub->add_flag("--any-operands",
                named.any_operands,
                "Allow an accumulation mode of a device that does not take these operands");
  sub->add_option("--length",
                  named.length,
                  "Elements of a block, or products of dot, up to 4096 (default: 32 for "
                  "quantize-mx and p3109.*, one block for dot with block scales, else 16)")
      ->check(CLI::Range(1, kMostDotLength));
  sub->add_option("--block",
                  named.block,
                  "Products of dot that share a block scale (default: 32 for a --scale-format "
                  "without mantissa bits, such as e8m0fnu, else 16)")
      ->check(CLI::Range(1, kMostDotLength));
  sub->add_option("--scale-rule",
                  named.scale_rule,
                  "Rule of the scales of quantize-mx (default: e8m0): e8m0, e8m0-even, e8m0-ulp, "
                  "e8m0-three-eighths, e8m0-ceil, pow2-floor or pow2-ceil")
      ->check(NotEmpty());
  sub->add_option("--scale-rounding",
                  named.scale_rounding,
                  "MODE or MODE,OVERFLOW of the scale of p3109.ConvertToBlockMaxAbsFinite, such as "
                  "rtp,saturate (default: those of the elements)")
      ->check(NotEmpty());
  sub->add_flag("--tensor-scale",
                named.tensor_scale,
                "Add the scale of the tensor as an operand (quantize-nvfp4), or the scales of both "
                "tensors (dot with --scale-format)");
  AddRoundingOptions(sub, options.rounding, "nonsaturate");
  sub->get_option("--overflow")->default_str("");  // the default depends on the operation
  sub->remove_option(sub->get_option("--seed"));
  sub->add_option("--tininess",
                  options.tininess,
                  "When tininess is detected for the underflow flag: after (default) or before "
                  "rounding");
  sub->add_option(
      "--invalid-integer",
      options.invalid_integer,
      "Result of to-* for a value out of range and for NaN: riscv (default; the nearest "
      "end of the range, and the largest integer), arm (the nearest end, and 0) or x86 "
      "(the smallest signed or the largest unsigned integer)");
  sub->add_option(
         "--profile",
         named.profile,
         "Convert from fp32 or float64 as this implementation does, without flags (convert and "
         "from-f64; see "
         "`numsim oracle profiles`)")
      ->check(NotEmpty());
}

void AddLevelOptions(CLI::App* sub, LevelOptions& levels, const std::string& purpose) {
  sub->add_option("--level",
                  levels.level,
                  purpose +
                      ": edges, full, random:N (dot: 30 of 32 cases have finite operands and a sum "
                      "in range, 1 a sum around the largest value, 1 special operands; other "
                      "operations: half have close exponents, half uniform codes) or uniform:N "
                      "(uniform codes)");
  sub->add_option("--seed", levels.seed, "Seed of random:N and uniform:N")
      ->check(Unsigned64())
      ->capture_default_str();
}

void AddNanOption(CLI::App* sub, std::string& nan) {
  sub->add_option("--nan",
                  nan,
                  "Codes accepted where NaN is expected: exact (canonical NaN) or any (every NaN)")
      ->capture_default_str();
}

void WriteToStandardOutput(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw Error::Format("standard output: cannot write: {}", std::strerror(errno));
  }
}

OperationRequest OperationOptions::Request() const {
  OperationRequest request = named;
  if (sub->count("--rounding") + sub->count("--sr-bits") + sub->count("--sr-variant") > 0) {
    request.rounding = rounding.ParsedRounding();
  }
  if (sub->count("--overflow") > 0) request.overflow = rounding.ParsedOverflow();
  if (sub->count("--tininess") > 0) request.tininess = ParseTininess(tininess);
  if (sub->count("--invalid-integer") > 0) {
    request.invalid_integer = ParseInvalidInteger(invalid_integer);
  }
  if (!request.profile.empty()) request.profile = CompleteProfileName(request.profile);
  return request;
}

std::string OperationText(const Operation& operation) {
  return fmt::format("{}: {} -> {}",
                     operation.info().name,
                     ColumnsText(operation.inputs()),
                     ColumnsText(operation.results()));
}

}  // namespace numsim::apps
