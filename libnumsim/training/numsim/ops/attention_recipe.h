// The precision of attention, as data: the formats of the operands of its products, and how their
// sums are accumulated.
//
// For each head of a sequence, with a row per token, attention computes these products A B^T, each
// with its own inner dimension (docs/attention.md):
//   scores                S  = Q K^T      A = Q      B = K      inner dimension: the head's columns
//   output                O  = P V        A = P      B = V^T    tokens
//   gradient of P         dP = dO V^T     A = dO     B = V      columns
//   gradient of values    dV = P^T dO     A = P^T    B = dO^T   tokens
//   gradient of queries   dQ = dS K       A = dS     B = K^T    tokens
//   gradient of keys      dK = dS^T Q     A = dS^T   B = Q^T    tokens
// Between them is a softmax of rows in float32, of scores that are not rounded: P = exp(S /
// sqrt(columns) - offset) and dS = P (dP - D) / sqrt(columns), where D is the row's sum of dO O.
// The output is divided by the sums of the rows of P, before P is rounded.
#pragma once

#include <string>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/scale.h"
#include "numsim/quantize/scale_layout.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// The choices of a recipe, with the keys of the section [attention] of a configuration.
struct AttentionPrecision {
  // Format of Q, K, V and P, as they enter products.
  std::string format = "fp32";
  std::string gradient_format = {};  // of dO and dS; empty: as `format`
  // Accumulation mode of all products. All but library, which attention does not have.
  std::string accumulate = "fp32:unfused";
  // The elements of an operand that share a scale, as the operand enters a product: "head" (the
  // head of one sequence), "row" (a vector along the inner dimension) or "block:N" (N elements of
  // such a vector). Empty: head. P has one scale, p_scale.
  std::string scaling = {};
  // Scale rule of the operands other than P: one that follows from absolute maxima alone, in one
  // level. Empty: absmax for formats of at most 8 bits, otherwise none.
  std::string scale_rule = {};
  // Scale of P, whose elements are at most about 1: P is stored as codes of P / p_scale. 0: the
  // scale that the scale rule gives to an absolute maximum of 1, 1 / 448 for e4m3fn under absmax.
  double p_scale = 0;

  friend bool operator==(const AttentionPrecision&, const AttentionPrecision&) = default;
};

// How an operand is quantised, to nearest even.
struct AttentionOperand {
  Format format = {};
  ScaleLayout layout = {};  // of the operand as it enters a product, whose vectors are the rows
  ScaleRule scale_rule = ScaleRule::kNone;
  Overflow overflow = Overflow::kNonsaturate;

  // Returns whether elements are rounded without a scale.
  bool Unscaled() const { return scale_rule == ScaleRule::kNone; }
};

// The precision of attention.
struct AttentionRecipe {
  AttentionOperand forward, gradient;  // of Q, K and V; of dO and dS
  AttentionOperand p;                  // of P, under p_scale
  Scale p_scale = {};
  AccumulationMode accumulation;

  AttentionRecipe();  // float32 under mode fp32:unfused

  // Returns true if operands are float32 tensors as they are.
  bool IsOfFloat32() const;
  // Returns true under mode fp32:unfused, whose probabilities are powers of e. Those of all other
  // modes are powers of 2, computed by fused multiply-adds.
  bool IsUnfused() const;
};

// Returns the recipe of these choices. Throws KeyError naming the field: for a format without a
// sign or a zero, or of more than 16 bits with scales; for an unknown mode, and for library; for an
// unknown scaling or scale rule, one of two levels or one that compares elements; for a scaling
// without scales; for a p_scale that is no positive number with a finite inverse, or of a format
// wider than 16 bits; and under a block-scaled mode for formats, blocks or scales that it does not
// take.
AttentionRecipe MakeAttentionRecipe(const AttentionPrecision& precision);

// Returns the scale rules that attention has, separated by ", ".
std::string AttentionScaleRuleNames();

}  // namespace numsim
