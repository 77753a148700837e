#include "core/base/status.hpp"

#include <cstdio>

#include "core/base/layer_wall.hpp"

namespace streamfilter {

bool Problem::set(Error what, const char* format, ...) noexcept {
  error = what;
  detail[0] = hint[0] = '\0';
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return false;
}

bool Problem::add_detail(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(detail, sizeof detail, format, arguments);
  va_end(arguments);
  return false;
}

bool Problem::add_hint(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(hint, sizeof hint, format, arguments);
  va_end(arguments);
  return false;
}

}  // namespace streamfilter
