// ws, bare: what most Node programs receive with, and what the others here but undici are built on.
import { WebSocket } from 'ws';

const readers = {
  text: (take) => (data) => take(data.toString().length),
  bytes: (take) => (data) => take(data.length),
};

export const open = ({ origin, path, mode, take }) => {
  new WebSocket(origin + path, { perMessageDeflate: false }).on('message', readers[mode](take));
};
