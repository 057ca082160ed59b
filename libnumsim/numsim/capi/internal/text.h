// Writes text to the caller's buffers, and keeps exceptions inside the C interface.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string_view>

#include "numsim/base/error.h"
#include "numsim/capi/numsim.h"

namespace numsim::capi {

// A caller's buffer for text. Nothing is written if the pointer is null or the size is 0.
struct TextBuffer {
  char* data;
  size_t size;

  // Writes as much of the text as fits, and a final 0.
  void Write(std::string_view text) const noexcept {
    if (data == nullptr || size == 0) return;
    const size_t n = std::min(text.size(), size - 1);
    std::memcpy(data, text.data(), n);
    data[n] = '\0';
  }
};

// Returns body(), and converts its exceptions to a status. An Error becomes `on_error`. Writes the
// exception's text to `message`, or an empty text if there is none.
template <typename Body>
numsim_status_t CatchAll(TextBuffer message, numsim_status_t on_error, const Body& body) noexcept {
  message.Write("");
  try {
    return body();
  } catch (const Error& error) {
    message.Write(error.what());
    return on_error;
  } catch (const std::bad_alloc&) {
    message.Write("out of memory");
    return NUMSIM_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    message.Write(error.what());
    return NUMSIM_ERROR_INTERNAL;
  } catch (...) {
    return NUMSIM_ERROR_INTERNAL;
  }
}

}  // namespace numsim::capi
