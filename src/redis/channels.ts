import type { Redis } from 'ioredis';

/** What listens to a channel. */
export interface ChannelListener {
  next(data: Uint8Array): void;
  /** Is called if Redis refuses the subscription. */
  error(error: unknown): void;
  /** Is called when messages arrive from now on: also after each reconnect. */
  ready?(): void;
}

/** The subscriptions of a connection. */
export interface Channels {
  /** Adds a listener, and returns the function that removes it. */
  listen(channel: string, listener: ChannelListener): () => void;
}

/** Creates {@link Channels}: one subscription for each channel, with any number of listeners. */
export const createChannels = (subscriber: Redis): Channels => {
  const channels = new Map<string, Set<ChannelListener>>();

  const forEach = (channel: string, action: (listener: ChannelListener) => void): void =>
    channels.get(channel)?.forEach(action);

  const subscribe = (channel: string): void =>
    void subscriber.subscribe(channel).then(
      () => forEach(channel, (listener) => listener.ready?.()),
      // Without a connection the next one subscribes again.
      (error: unknown) => {
        if (isRefusal(error)) forEach(channel, (listener) => listener.error(error));
      },
    );

  subscriber.on('messageBuffer', (channel: Buffer, data: Buffer) =>
    forEach(channel.toString(), (listener) => listener.next(data)),
  );
  // The client gives up subscriptions that were not confirmed for a while.
  subscriber.on('ready', () => {
    for (const channel of channels.keys()) subscribe(channel);
  });

  return {
    listen: (channel, listener) => {
      const listeners = channels.get(channel) ?? new Set();
      channels.set(channel, listeners.add(listener));
      if (listeners.size === 1) subscribe(channel);
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        channels.delete(channel);
        subscriber.unsubscribe(channel).catch(() => undefined);
      };
    },
  };
};

const isRefusal = (error: unknown): boolean => error instanceof Error && error.name === 'ReplyError';
