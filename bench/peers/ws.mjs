// ws alone: most Node programs use it, and so do all other peers except undici and the global WebSocket.
import { WebSocket } from 'ws';

const readers = {
  text: (take) => (data) => take(data.toString().length),
  bytes: (take) => (data) => take(data.length),
};

export const open = ({ origin, path, mode, take }) => {
  new WebSocket(origin + path, { perMessageDeflate: false }).on('message', readers[mode](take));
};
