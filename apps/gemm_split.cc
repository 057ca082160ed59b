#include "apps/gemm_split.h"

#include <fmt/format.h>

#include "apps/command.h"
#include "numsim/formats/format_table.h"

namespace numsim::apps {

void AddSplitOptions(CLI::App* sub, SplitOptions& options) {
  CLI::Option* const split =
      sub->add_option("--split-k",
                      options.parts,
                      "Cut the inner dimension into this number of parts; their sums are added in "
                      "float32, in order (default: one sum)")
          ->check(CLI::Range(size_t{1}, SplitK::kMost));
  sub->add_option(
         "--split-tile",
         options.tile,
         "Products of a k-tile, of which parts consist (default: 128 for operands of at most "
         "8 bits, else 64, as cuBLASLt on an H200)")
      ->check(CLI::Range(size_t{1}, SplitK::kMost))
      ->needs(split);
  sub->add_option("--split-partition",
                  options.partition,
                  "contiguous (K products are cut into parts of ceil(tiles / parts) k-tiles) or "
                  "cublaslt (parts of floor(K / parts) products, rounded up to k-tiles, as on an "
                  "H200: the last products may be in no part, which is said)")
      ->check(NotEmpty())
      ->needs(split)
      ->capture_default_str();
  sub->add_option(
         "--split-partials",
         options.partials,
         "Format to which the sum of a part is rounded before it is added: fp32, bf16, fp16 "
         "or another format")
      ->check(NotEmpty())
      ->needs(split)
      ->capture_default_str();
}

std::optional<SplitK> ParseSplit(const SplitOptions& options,
                                 const FormatSpec& a,
                                 const FormatSpec& b) {
  const SplitPartition partition = ParseSplitPartition(options.partition);
  const FormatSpec partials = ParseFormat(options.partials).spec;
  if (options.parts == 0) return std::nullopt;
  return SplitK{.parts = options.parts,
                .tile = options.tile == 0 ? CublasLtTile(a, b) : options.tile,
                .partition = partition,
                .partials = partials};
}

std::string SplitText(const SplitK& split, size_t inner) {
  const InnerRange first = PartOf(split, inner, 0);
  std::string text = fmt::format(
      "split             {} parts of {} products, {} with k-tiles of {}; sums {}added in float32\n",
      split.parts,
      first.end,
      ToString(split.partition),
      split.tile,
      split.partials == kFp32 ? "" : "rounded to " + ToString(split.partials) + " and ");
  if (const size_t left = ProductsLeftOut(split, inner); left != 0) {
    text += fmt::format(
        "left out          the last {} of {} products are not summed, as cuBLASLt does\n",
        left,
        inner);
  }
  return text;
}

}  // namespace numsim::apps
