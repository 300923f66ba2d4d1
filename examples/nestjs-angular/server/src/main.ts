import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { fileURLToPath } from 'node:url';
import { AppModule } from './app.module.js';
import { localService } from './demo/local-service.js';
import { FeedLog } from './log.js';
import { servePage } from './page.js';
import type { Settings } from './settings.js';

/** A running server. */
export interface RunningServer {
  /** The address of the page. */
  readonly url: string;
  /** A description of the source. */
  readonly source: string;
  /** Stops the server, and the local service if there is one. */
  close(): Promise<void>;
}

/** The output folder of `ng build`. This file is in dist/server. */
const builtPage = fileURLToPath(new URL('../page', import.meta.url));

/** Starts the server. Before that, it starts a local service, unless the environment names another service. */
export const startServer = async (settings: Settings): Promise<RunningServer> => {
  const service = settings.isRemote ? undefined : await localService(settings);
  const app = await NestFactory.create<NestExpressApplication>(AppModule.of(settings, service), {
    logger: new FeedLog(),
    // Streams stay open while a page is open. Without this option they would delay the shutdown.
    forceCloseConnections: true,
  });
  servePage(app, builtPage);
  await app.listen(settings.port, settings.host);
  return {
    url: (await app.getUrl()).replace('[::1]', 'localhost'),
    source: service
      ? `a local service, ${settings.rate} ${settings.rate === 1 ? 'frame' : 'frames'} a second`
      : 'the service of TRADE_FEED_BASE_URL',
    close: async () => {
      await app.close();
      await service?.close();
    },
  };
};
