#include "server.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace checker {
namespace {

[[noreturn]] void die(const std::string& what) {
  fprintf(stderr, "model: %s\n", what.c_str());
  exit(3);
}

// Processes whose parent is `parent`.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  DIR* processes = opendir("/proc");
  while (const dirent* entry = readdir(processes)) {
    std::ifstream file("/proc/" + std::string(entry->d_name) + "/stat");
    std::string text;
    if (atoi(entry->d_name) == 0 || !std::getline(file, text)) continue;
    const size_t end = text.rfind(')');
    int ppid = 0;
    char state;
    if (sscanf(text.c_str() + end + 1, " %c %d", &state, &ppid) == 2 && ppid == parent)
      children.push_back(atoi(entry->d_name));
  }
  closedir(processes);
  return children;
}

}  // namespace

// Also true of a process that has ended but was not waited for.
bool is_gone(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return true;
  const size_t end = text.rfind(')');
  return end != std::string::npos && text.compare(end, 3, ") Z") == 0;
}

Server::Server(std::string bindir, std::string directory, int port)
    : bindir_(std::move(bindir)), directory_(std::move(directory)), port_(port) {}

Server::~Server() {
  if (is_running()) kill_all();
  if (system(("rm -rf " + directory_).c_str()) != 0)
    fprintf(stderr, "model: %s stays\n", directory_.c_str());
}

void Server::run(const std::string& command) const {
  const std::string whole = command + " >>" + log_file() + " 2>&1";
  if (system(whole.c_str()) != 0) die("failed: " + command + "; see " + log_file());
}

std::string Server::conninfo() const {
  return "host=" + directory_.substr(0, directory_.rfind('/')) + " port=" + std::to_string(port_) +
         " dbname=postgres connect_timeout=20 sslmode=disable gssencmode=disable";
}

void Server::append_setting(const std::string& line) const {
  std::ofstream(directory_ + "/postgresql.conf", std::ios::app) << line << "\n";
}

void Server::init(const std::string& settings) {
  run(bindir_ + "/initdb -N -A trust --no-locale -E UTF8 -D " + directory_);
  append_setting(settings);
}

pid_t Server::begin_copy_of(const Server& primary) {
  run("rm -rf " + directory_);
  const std::string command = "exec " + bindir_ + "/pg_basebackup -N -c fast -R -X stream -D " +
                              directory_ + " -d '" + primary.conninfo() + "' >>" + log_file() +
                              " 2>&1";
  const pid_t process = fork();
  if (process != 0) return process;
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  _exit(127);
}

void Server::start() {
  postmaster_ = fork();
  if (postmaster_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGQUIT);  // it ends with us
    const int log = open(log_file().c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
    dup2(log, 1);
    dup2(log, 2);
    const std::string program = bindir_ + "/postgres", port = std::to_string(port_),
                      sockets = directory_.substr(0, directory_.rfind('/'));
    execl(program.c_str(), program.c_str(), "-D", directory_.c_str(), "-p", port.c_str(), "-k",
          sockets.c_str(), nullptr);
    _exit(127);
  }
  for (int tries = 0; tries < 12000; ++tries) {
    if (PQping(conninfo().c_str()) == PQPING_OK) return;
    if (waitpid(postmaster_, nullptr, WNOHANG) == postmaster_) {
      postmaster_ = 0;
      break;
    }
    usleep(5000);
  }
  die("the server does not start; see " + log_file());
}

void Server::stop(const char* mode) {
  kill(postmaster_, std::string(mode) == "fast" ? SIGINT : SIGQUIT);
  waitpid(postmaster_, nullptr, 0);
  postmaster_ = 0;
}

void Server::kill_all() {
  // Stops the postmaster first, so that it starts no process while they are listed.
  kill(postmaster_, SIGSTOP);
  const std::vector<pid_t> children = children_of(postmaster_);
  kill(postmaster_, SIGKILL);
  for (const pid_t child : children) kill(child, SIGKILL);
  waitpid(postmaster_, nullptr, 0);
  for (const pid_t child : children)
    while (!is_gone(child)) usleep(1000);
  unlink((directory_ + "/postmaster.pid").c_str());
  postmaster_ = 0;
}

std::vector<pid_t> Server::processes() const { return children_of(postmaster_); }

void Server::promote() { run(bindir_ + "/pg_ctl -w -s -D " + directory_ + " promote"); }

void Server::reload() const { kill(postmaster_, SIGHUP); }

}  // namespace checker
