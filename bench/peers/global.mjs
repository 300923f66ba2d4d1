// The built-in WebSocket of Node 22 and later, and of Bun.
export const open = ({ origin, path, take }) => {
  const socket = new WebSocket(origin + path);
  socket.binaryType = 'arraybuffer';
  socket.addEventListener('message', ({ data }) => take(data.length ?? data.byteLength));
};
