// A server of our own in a temporary directory. It can be killed, and a standby can follow it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace checker {

class Server {
 public:
  Server(std::string bindir, std::string directory, int port);
  ~Server();

  void init(const std::string& settings);
  // Begins a base backup for a standby of `primary`; returns the process that makes it.
  pid_t begin_copy_of(const Server& primary);
  void start();
  void stop(const char* mode);  // fast, immediate
  // SIGKILL for the postmaster and each of its processes.
  void kill_all();
  void promote();
  std::vector<pid_t> processes() const;  // without the postmaster
  bool is_running() const { return postmaster_ > 0; }
  std::string conninfo() const;
  std::string log_file() const { return directory_ + ".log"; }
  void append_setting(const std::string& line) const;
  void reload() const;

 private:
  void run(const std::string& command) const;

  std::string bindir_, directory_;
  int port_;
  pid_t postmaster_ = 0;
};

// Also true of a process that has ended but was not waited for.
bool is_gone(pid_t process);

}  // namespace checker
