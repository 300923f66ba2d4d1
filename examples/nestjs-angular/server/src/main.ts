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
  /** Where the page is. */
  readonly url: string;
  /** What it streams from, in words. */
  readonly source: string;
  /** Ends it, and the local service if there is one. */
  close(): Promise<void>;
}

/** Where `ng build` puts the page; this file is in dist/server. */
const builtPage = fileURLToPath(new URL('../page', import.meta.url));

/** Starts the server, and first a local service unless the environment names another one. */
export const startServer = async (settings: Settings): Promise<RunningServer> => {
  const service = settings.isRemote ? undefined : await localService(settings);
  const app = await NestFactory.create<NestExpressApplication>(AppModule.of(settings, service), {
    logger: new FeedLog(),
    // Streams are open for as long as somebody looks: without this, they would hold up the end.
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
