// One listening socket of the server.
#pragma once

#include <uv.h>

#include <cstring>
#include <memory>

#include "server/connection/connection.h"
#include "server/net/unix_socket_name.h"
#include "server/server.h"

namespace cellar {

// Belongs to libuv from init on; Close() ends it, its close callback deletes it.
struct Server::Listener {
  Listener(SocketKind socket_kind, SocketSpeech socket_speech)
      : kind(socket_kind), speech(socket_speech) {
    std::memset(&handle, 0, sizeof(handle));
  }
  void Close() {
    name.Remove();  // while its socket is open
    uv_close(&handle.handle, [](uv_handle_t* closed) noexcept {
      const std::unique_ptr<Listener> self(static_cast<Listener*>(closed->data));
    });
  }

  union {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  } handle;
  UnixSocketName name;  // of a unix socket that this server has bound
  SocketKind kind;
  SocketSpeech speech;
};

}  // namespace cellar
