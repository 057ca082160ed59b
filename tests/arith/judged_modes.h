// Accumulation modes, each with the oracle's function for it.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/named_formats.h"
#include "tests/reference/accumulate.h"

namespace numsim {

using oracle::DotSide;
using ReferenceSum = std::function<double(const DotSide&, const DotSide&)>;

struct JudgedMode {
  std::string
      text;  // how ParseAccumulationMode reads it; empty where only a name of the table does
  AccumulationMode mode;
  ReferenceSum judge;
};

inline void PrintTo(const JudgedMode& judged, std::ostream* os) {
  *os << (judged.text.empty() ? ToString(judged.mode) : judged.text);
}

inline double ValueOf(const Unrounded& x) {
  if (x.kind == NumberKind::kNan) return std::copysign(std::nan(""), x.negative ? -1 : 1);
  const double magnitude = x.kind == NumberKind::kInfinity
                               ? std::numeric_limits<double>::infinity()
                               : std::ldexp(static_cast<double>(x.significand), x.exponent);
  return x.negative ? -magnitude : magnitude;
}

// The same number, with the same sign of zero; every NaN is positive.
inline bool Same(double x, double y) {
  if (std::isnan(x) && std::isnan(y)) return !std::signbit(x);
  return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
}

inline JudgedMode FormatMode(const FormatSpec& format,
                             const char* text,
                             const oracle::FloatGrid& grid) {
  AccumulationMode mode;
  mode.kind = AccumulationKind::kFormat;
  mode.format = format;
  return {text, mode, [grid](const DotSide& a, const DotSide& b) {
            return oracle::SequentialDot(a, b, grid, true);
          }};
}

inline JudgedMode UnfusedMode(const FormatSpec& format,
                              const char* text,
                              const oracle::FloatGrid& grid) {
  JudgedMode judged = FormatMode(format, text, grid);
  judged.mode.kind = AccumulationKind::kFormatUnfused;
  judged.judge = [grid](const DotSide& a, const DotSide& b) {
    return oracle::SequentialDot(a, b, grid, false);
  };
  return judged;
}

inline JudgedMode AlignedMode(const oracle::AlignedUnit& unit) {
  AccumulationMode mode;
  mode.kind = AccumulationKind::kAligned;
  mode.chunk = static_cast<int>(unit.chunk);
  mode.fraction_bits = unit.fraction_bits;
  mode.promote = static_cast<int>(unit.promote);
  if (unit.byte_pairs) mode.order = ProductOrder::kBytePairs;
  std::string text = fmt::format("trunc:{},{}", unit.fraction_bits, unit.chunk);
  if (unit.promote != 0) text += fmt::format(",{}", unit.promote);
  return {unit.byte_pairs ? "" : text, mode, [unit](const DotSide& a, const DotSide& b) {
            return oracle::AlignedDot(a, b, unit);
          }};
}

inline JudgedMode ChunkMode(AccumulationKind kind,
                            size_t chunk,
                            double (*dot)(const DotSide&, const DotSide&, size_t)) {
  AccumulationMode mode;
  mode.kind = kind;
  mode.chunk = static_cast<int>(chunk);
  const std::string text =
      kind == AccumulationKind::kChunked ? fmt::format("fp32-chunked:{}", chunk) : "";
  return {
      text, mode, [chunk, dot](const DotSide& a, const DotSide& b) { return dot(a, b, chunk); }};
}

inline JudgedMode AlignedDownMode(size_t chunk, bool even_odd) {
  AccumulationMode mode;
  mode.kind = AccumulationKind::kAlignedDown;
  mode.chunk = static_cast<int>(chunk);
  mode.fraction_bits = 24;
  if (even_odd) mode.order = ProductOrder::kEvenOdd;
  return {"", mode, [chunk, even_odd](const DotSide& a, const DotSide& b) {
            return oracle::AlignedDownDot(a, b, chunk, even_odd);
          }};
}

inline constexpr oracle::FloatGrid kHalf = {11, -14, 15};
inline constexpr oracle::FloatGrid kBrain = {8, -126, 127};

inline std::vector<JudgedMode> JudgedModes() {
  AccumulationMode fp64;
  fp64.kind = AccumulationKind::kFloat64;
  return {
      {"fp64",
       fp64,
       [](const DotSide& a, const DotSide& b) {
         return oracle::SequentialDot(a, b, oracle::kFloat64, true);
       }},
      FormatMode(kFp32, "fp32", oracle::kFloat32),
      FormatMode(kFp16, "fp16", kHalf),
      FormatMode(kBf16, "bf16", kBrain),
      FormatMode(kTf32, "tf32", {11, -126, 127}),
      FormatMode(kE5M2, "e5m2", {3, -14, 15}),
      UnfusedMode(kFp32, "fp32:unfused", oracle::kFloat32),
      UnfusedMode(kFp16, "fp16:unfused", kHalf),
      UnfusedMode(kBf16, "bf16:unfused", kBrain),
      ChunkMode(AccumulationKind::kChunked, 1, oracle::ChunkedDot),
      ChunkMode(AccumulationKind::kChunked, 7, oracle::ChunkedDot),
      ChunkMode(AccumulationKind::kChunked, 128, oracle::ChunkedDot),
      AlignedMode({.fraction_bits = 13, .chunk = 32}),
      AlignedMode({.fraction_bits = 13, .chunk = 32, .promote = 128}),
      AlignedMode({.fraction_bits = 25, .chunk = 16}),
      AlignedMode({.fraction_bits = 23, .chunk = 4}),
      AlignedMode({.fraction_bits = 24, .chunk = 8, .promote = 24}),
      AlignedMode({.fraction_bits = 35, .chunk = 64}),
      AlignedMode({.fraction_bits = 1, .chunk = 3}),
      AlignedMode({.fraction_bits = 40, .chunk = 1}),
      AlignedMode({.fraction_bits = 25, .chunk = 16, .promote = 32, .byte_pairs = true}),
      AlignedMode({.fraction_bits = 13, .chunk = 16, .byte_pairs = true}),
      ChunkMode(AccumulationKind::kExactChunks, 4, oracle::ExactChunksDot),
      ChunkMode(AccumulationKind::kExactChunks, 2, oracle::ExactChunksDot),
      ChunkMode(AccumulationKind::kFlushedPairs, 2, oracle::FlushedPairsDot),
      ChunkMode(AccumulationKind::kFlushedPairs, 4, oracle::FlushedPairsDot),
      AlignedDownMode(8, false),
      AlignedDownMode(4, false),
      AlignedDownMode(16, true),
  };
}

inline std::vector<AccumulationMode> RulesOfEveryKind() {
  std::vector<AccumulationMode> modes = {AccumulationMode{}};
  for (const JudgedMode& judged : JudgedModes()) modes.push_back(judged.mode);
  return modes;
}

inline AccumulationMode Trunc(int fraction_bits, int chunk, int promote = 0) {
  AccumulationMode mode;
  mode.kind = AccumulationKind::kAligned;
  mode.fraction_bits = fraction_bits;
  mode.chunk = chunk;
  mode.promote = promote;
  return mode;
}

// The sum of products of bf16 operands.
inline double Sum(const AccumulationMode& mode,
                  const std::vector<float>& a,
                  const std::vector<float>& b) {
  return ValueOf(Accumulate(mode, {kBf16, a}, {kBf16, b}));
}

}  // namespace numsim
