import { Agent, type ClientRequestArgs } from 'node:http';
import type { Socket } from 'node:net';

/** An agent that stores its last socket, so that the demo can break the connection. */
export class DemoAgent extends Agent {
  private socket: Socket | undefined;

  override createConnection(options: ClientRequestArgs, callback?: (error: Error | null, socket: Socket) => void) {
    const socket = super.createConnection(options, callback as never) as Socket;
    this.socket = socket;
    return socket;
  }

  /** Breaks the connection without a close frame, like a network failure. */
  drop(): void {
    this.socket?.destroy();
  }

  /** Writes a message to the connection, like a broken proxy. The library sends no messages. */
  scribble(): void {
    this.socket?.write(textMessage('hello'));
  }
}

/** Creates a text message of a client (RFC 6455, section 5.2), with a mask of zeros. */
const textMessage = (text: string): Buffer =>
  Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);
