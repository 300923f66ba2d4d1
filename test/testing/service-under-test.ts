import { afterEach } from '@jest/globals';
import { VirtualTimeScheduler } from 'rxjs';
import { startTradeFeedService, type TradeFeedService, type TradeFeedServiceOptions } from 'rx-trade-feed/testing';

/** Starts services. Shuts them down after each test. */
export const serviceFactory = (): ((options?: TradeFeedServiceOptions) => Promise<TradeFeedService>) => {
  const running: TradeFeedService[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((service) => service.shutdown()));
  });
  return async (options) => {
    const service = await startTradeFeedService(options);
    running.push(service);
    return service;
  };
};

/** Waits for a service to start. Returns it with the key of a new account. */
export const withKey = async (starting: Promise<TradeFeedService>) => {
  const service = await starting;
  return { service, key: service.createAccount().createApiKey() };
};

/** A clock that moves only when a test moves it. */
export interface StoodClock {
  readonly scheduler: VirtualTimeScheduler;
  /** Moves the time forward, and runs the actions that are due. */
  advance(ms: number): void;
}

/** Creates a clock at 0. */
export const manualClock = (): StoodClock => {
  const scheduler = new VirtualTimeScheduler();
  return {
    scheduler,
    advance: (ms) => {
      const until = scheduler.frame + ms;
      scheduler.maxFrames = until;
      scheduler.flush();
      scheduler.frame = until;
    },
  };
};
