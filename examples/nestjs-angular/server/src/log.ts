import { ConsoleLogger } from '@nestjs/common';

const ofNest = new Set(['NestFactory', 'InstanceLoader', 'RoutesResolver', 'RouterExplorer', 'NestApplication']);

/** A log of what happens to the feed, without what Nest tells of its own start. */
export class FeedLog extends ConsoleLogger {
  override log(message: unknown, ...more: unknown[]): void {
    if (!ofNest.has(String(more.at(-1)))) super.log(message, ...more);
  }
}
