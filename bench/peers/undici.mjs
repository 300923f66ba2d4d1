// The WebSocket of undici, as a package.
import { WebSocket } from 'undici';

export const open = ({ origin, path, take }) => {
  const socket = new WebSocket(origin + path);
  socket.binaryType = 'arraybuffer';
  socket.addEventListener('message', ({ data }) => take(data.length ?? data.byteLength));
};
