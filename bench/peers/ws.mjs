// ws alone: most Node programs use it, and so do all other peers except undici, Bun and the global WebSocket.
import { WebSocket } from 'ws';
import { hold } from '../support/hold.mjs';

const readers = {
  text: (take) => (data) => take(data.toString().length),
  bytes: (take) => (data) => take(data.length),
  held: (take, size) => hold(size, readers.text(take)),
};

export const open = ({ origin, path, mode, size, take }) => {
  new WebSocket(origin + path, { perMessageDeflate: false }).on('message', readers[mode](take, size));
};
