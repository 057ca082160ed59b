// Everything in the papers that numsim reproduces: figures, tables, theorems, equations, appendices.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace numsim::experiments {

// One figure, table, theorem, equation or appendix of a paper.
struct PaperItem {
  std::string_view id;         // "switchback/figure-1", unique
  std::string_view source;     // "[SwitchBack] Figure 1"
  std::string_view statement;  // what it shows or claims, with the paper's numbers
  // Empty if an experiment declares a claim about it; otherwise why there is none: "not built: …",
  // "out of reach: …" or "no claim: …".
  std::string_view untested;
};

// Return the items of one paper, in the order of its text.
std::span<const PaperItem> SwitchBackItems();
std::span<const PaperItem> FishmanItems();
std::span<const PaperItem> Seed003Items();
// Returns those of the papers on 4-bit training: abstracts, and parts of a method that claims are about.
std::span<const PaperItem> Fp4Items();

// Returns the items of all papers.
const std::vector<PaperItem>& PaperItems();

}  // namespace numsim::experiments
