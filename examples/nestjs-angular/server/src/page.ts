import type { NestExpressApplication } from '@nestjs/platform-express';
import type { ServerResponse } from 'node:http';

/** Allows the inline styles of Angular components. Scripts must be files, and all resources must have the same origin. */
const policy =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'self'; frame-ancestors 'none'";

/** Serves the built page from the origin of the feed, so that no CORS is needed and one cookie is enough. */
export const servePage = (app: NestExpressApplication, folder: string): void => {
  app.disable('x-powered-by');
  app.useStaticAssets(folder, {
    setHeaders: (response: ServerResponse, path: string) => {
      response.setHeader('Content-Security-Policy', policy);
      response.setHeader('X-Content-Type-Options', 'nosniff');
      response.setHeader('Referrer-Policy', 'no-referrer');
      // The file names contain a hash of their contents, except the HTML page.
      response.setHeader('Cache-Control', path.endsWith('.html') ? 'no-cache' : 'public, max-age=31536000, immutable');
    },
  });
};
