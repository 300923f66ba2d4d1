import { ConsoleLogger } from '@nestjs/common';

const ofNest = new Set(['NestFactory', 'InstanceLoader', 'RoutesResolver', 'RouterExplorer', 'NestApplication']);

/** Logs the feed, without the messages of Nest about its start. */
export class FeedLog extends ConsoleLogger {
  override log(message: unknown, ...more: unknown[]): void {
    if (!ofNest.has(String(more.at(-1)))) super.log(message, ...more);
  }
}
