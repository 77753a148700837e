// Real streams: public traces that are not part of this repository. They are read from
// STREAMFILTER_TRACES, or from a directory beside the repository.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace bench {

inline std::string trace_directory() {
  const char* given = std::getenv("STREAMFILTER_TRACES");
  return given != nullptr ? given : "../shared/traces";
}

// Reads the keys of a trace (`seq,ts,key,weight`) one by one; none if it is not there.
class Trace {
 public:
  explicit Trace(const std::string& name) {
    const std::string path = trace_directory() + "/" + name;
    if (std::FILE* file = std::fopen(path.c_str(), "r"))
      std::fclose(file);
    else
      return;
    std::string quoted;
    for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    pipe_ = popen(("gzip -dc '" + quoted + "'").c_str(), "r");
    std::string header;
    if (pipe_ != nullptr) next(header);
  }
  Trace(const Trace&) = delete;
  ~Trace() {
    if (pipe_ != nullptr) pclose(pipe_);
    std::free(line_);
  }

  bool next(std::string& key) {
    const ssize_t length = pipe_ != nullptr ? getline(&line_, &size_, pipe_) : -1;
    if (length < 0) return false;
    const std::string line(line_, static_cast<std::size_t>(length));
    const std::size_t first = line.find(',', line.find(',') + 1) + 1;
    key = line.substr(first, line.find(',', first) - first);
    return true;
  }

 private:
  std::FILE* pipe_ = nullptr;
  char* line_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace bench
