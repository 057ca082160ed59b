// The kinds of linear layers as a table to read.
#pragma once

#include <string>

namespace numsim {

// A markdown table with a row for each of LinearKinds(), made from its default recipe: the operands
// and the accumulator of each product, what Forward keeps with its bytes an element (scales apart),
// and the source.
std::string LinearTable();

}  // namespace numsim
