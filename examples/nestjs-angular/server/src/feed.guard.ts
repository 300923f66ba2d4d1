import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';

/**
 * Decides which requests may read the feed. THIS IS A DEMO: it accepts every client that reaches the server, so the server listens on 127.0.0.1.
 *
 * Replace this with the check of your app: the session of a cookie, or a bearer token (`provideTradeFeed({ headers })` sends one). The guard also
 * refuses requests of pages of other sites. Otherwise such a page could make this browser restart the feed.
 */
@Injectable()
export class FeedGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>();
    const site = headers['sec-fetch-site'];
    return site === undefined || site === 'same-origin' || site === 'none';
  }
}
