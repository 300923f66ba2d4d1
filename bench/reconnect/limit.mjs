// A client without a library: it writes bytes to standby connections. It shows the cost of the network and of this machine.
import { once } from 'node:events';
import { connect } from 'node:tls';

const connected = async (port) => {
  const socket = connect({ port, host: '127.0.0.1', servername: '' }).setNoDelay();
  await once(socket, 'secureConnect');
  return socket;
};

/** Reconnects with the minimum of round trips: one for the ticket, one for the upgrade. */
export const limit = ({ baseUrl, onOpen, onFrame }) => {
  const { port, pathname, host } = new URL(baseUrl);
  const [, streamPort] = pathname.split('/').map(Number);
  const post = `POST ${pathname}/v1/wss/tickets HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: bench-key\r\nContent-Length: 2\r\n\r\n{}`;

  const stream = (socket, tickets, ticket) => {
    const next = connected(streamPort);
    const path = new URL(ticket.wss_url).pathname;
    let isOpen = false;
    const onData = (bytes) => {
      if (!isOpen) {
        isOpen = true;
        onOpen();
        const end = bytes.indexOf('\r\n\r\n') + 4;
        // A frame of more than 125 bytes has a header of four bytes.
        return onFrame(bytes.subarray(end + (bytes[end + 1] === 126 ? 4 : 2)));
      }
      if (bytes.indexOf(Buffer.from([0x88])) === -1) return undefined;
      socket
        .off('data', onData)
        .on('error', () => {})
        .end(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
      return void next.then((spare) => requestTicket(spare, tickets));
    };
    socket.on('data', onData);
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: ${ticket.subprotocol}\r\nAuthorization: Bearer ${ticket.ticket}\r\n\r\n`,
    );
  };
  const requestTicket = (spare, tickets) => {
    tickets.once('data', (bytes) => stream(spare, tickets, JSON.parse(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4))));
    tickets.write(post);
  };
  void Promise.all([connected(streamPort), connected(Number(port))]).then(([spare, tickets]) =>
    requestTicket(spare, tickets),
  );
};
