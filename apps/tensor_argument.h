// Tensors that arguments of the program name, and files of tensors that it writes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/io/array.h"

namespace numsim::apps {

// A tensor of a file: "FILE.npy", "FILE.safetensors" for its only tensor, or "FILE.safetensors:NAME".
struct TensorArgument {
  std::string file;
  std::string tensor;  // empty: the only one
};
TensorArgument ParseTensorArgument(const std::string& text);

using NamedArray = std::pair<std::string, Array>;
using Metadata = std::vector<std::pair<std::string, std::string>>;

// Reads the tensor that `text` names. A file of another extension than .safetensors is read as .npy;
// its tensor has the name of the file without the extension. Throws Error that names the file.
NamedArray ReadTensor(const std::string& text);

// Throws Error that names `what` ("OUT", "--scales-out") unless the extension of an output is .npy or
// .safetensors, or if the output would replace the file of an input tensor that has other tensors, too.
// To be called before any work.
void CheckTensorOutput(std::string_view what,
                       const std::string& file,
                       std::initializer_list<std::string> inputs = {});

// Writes one tensor, as the extension of the file says.
void WriteTensor(const std::string& file, const NamedArray& tensor, const Metadata& metadata = {});

// Codes in files.

// Returns codes as they are stored in `file`: in a .safetensors file with the dtype of the format
// where there is one (BF16, F8_E4M3, F4, I8, ...), else, and in .npy files, as unsigned integers.
Array StoredCodes(const std::string& file, Array codes, const FormatSpec& format);

// The metadata of .safetensors files that state what dtype and shapes do not: "numsim.format.NAME" is
// the format of the codes NAME, "numsim.granularity.NAME" the layout of its scales.
std::string FormatKey(const std::string& name);
std::string GranularityKey(const std::string& name);
// Returns the entry of the format of codes, unless their element type tells it.
Metadata CodeMetadata(const NamedArray& codes, const FormatSpec& format);

}  // namespace numsim::apps
