// `numsim stats --against`: the error of tensors that are quantised already.
#pragma once

#include <string>
#include <vector>

#include "apps/given_tensor.h"
#include "numsim/io/csv.h"

namespace numsim::apps {

// A tensor that is not measured.
struct Unmeasured {
  std::string name, dtype, why;
};

// Adds a row for each tensor of the file at `path` that has a namesake of the same shape in
// `original`: codes with scales against the original values (`scale` is "given"), other tensors value
// by value. Of two files with one tensor each the names do not matter. `scales` names the scales of
// the only tensor of that file, if it is not empty. `selected` is the name of a tensor, if it is not
// empty. Returns the tensors of both files that are not measured.
std::vector<Unmeasured> AddErrorsAgainst(Table& table,
                                         const std::string& path,
                                         const std::string& scales,
                                         const std::string& original,
                                         const std::string& selected,
                                         const GivenOptions& options);

}  // namespace numsim::apps
