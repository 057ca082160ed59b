// How an optimiser's moments are stored: a format, a scaling and a rounding. See docs/moments.md
// for the formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// How the values of a moment are scaled before they are rounded to the format.
enum class MomentScaling : uint8_t {
  kNone,    // a plain cast that saturates
  kTensor,  // a float32 scale from the tensor's absmax; code = cast(x * M / absmax) [Fishman]
  kBlock,   // a float32 scale from the absmax of each block of consecutive elements [torchao]
  // COAT's dynamic range expansion in blocks [COAT]: |x| -> M (|x| / absmax)^k. Zeros are ignored
  // in a block's smallest magnitude, and a block whose magnitudes are all equal has k = 1, so
  // neither case fails (moment_coat.h).
  kCoat,
  // bitsandbytes' dynamic 8-bit map in blocks, signed for m and unsigned for v [bitsandbytes8]. The
  // format is then written "dynamic", which is not in the table of formats.
  kDynamic,
};
// Names: none, tensor, block, coat, dynamic.
std::string_view ToString(MomentScaling scaling);

// The storage of one moment: a format, a scaling and a rounding.
struct MomentFormat {
  Format format = {};  // kDynamic: int8, only for its width
  MomentScaling scaling = MomentScaling::kNone;
  size_t block = 128;  // elements per block; kBlock, kCoat and kDynamic only
  // To nearest even, or stochastic of variant A with 1 to 32 random bits. kCoat rounds the expanded
  // value. kDynamic rounds to the nearest value, ties up, or stochastically between the two
  // neighbours.
  Rounding rounding = {};

  // Returns true for float32 without a scale, which loses nothing.
  bool IsExact() const;
  // Returns true if the scaling uses `block`.
  bool HasBlocks() const;
};

// Parses FORMAT[@SCALING[:BLOCK]][+sr[:BITS]], e.g. "fp32", "bf16", "e4m3fn@tensor",
// "e5m2@block:128", "e4m3@coat:128+sr", "dynamic:256" (the dynamic map in blocks of 256).
// Default scaling: tensor for formats of at most 8 bits, none for wider ones. Default block: 128;
// 256 for dynamic. FORMAT is a format of at most 16 bits (coat: at most 8) with a sign and a zero,
// or fp32 without scaling or stochastic rounding. Throws Error saying what was expected.
MomentFormat ParseMomentFormat(std::string_view text);
// Parses a list separated by commas.
std::vector<MomentFormat> ParseMomentFormatList(std::string_view text);
// Returns the text that parses to the same format, without defaults.
std::string ToString(const MomentFormat& format);

}  // namespace numsim
