import { EffectsPage } from "./effects/effects-page.js";
import { Frame } from "./frame.js";
import { JobPage } from "./job/job-page.js";
import { JobsPage } from "./jobs/jobs-page.js";
import { LoginPage } from "./login/login-page.js";
import { useLogin } from "./login/use-login.js";
import { OverviewPage } from "./overview/overview-page.js";
import { QueuesPage } from "./queues/queues-page.js";
import { useAddress } from "./router.js";
import { SessionProvider } from "./session.js";
import { SettingsPage } from "./settings/settings-page.js";
import { TenantsPage } from "./tenants/tenants-page.js";
import { Empty, ErrorNotice, PageHead } from "./ui/page.js";
import { PageGuard } from "./ui/page-guard.js";
import { WorkersPage } from "./workers/workers-page.js";

const pages: Record<string, () => React.ReactNode> = {
  "/": OverviewPage,
  "/jobs": JobsPage,
  "/effects": EffectsPage,
  "/queues": QueuesPage,
  "/workers": WorkersPage,
  "/tenants": TenantsPage,
  "/settings": SettingsPage,
};

export function App() {
  const { path } = useAddress();
  const login = useLogin();
  if (login.error) return <ErrorNotice error={login.error} retry={login.retry} />;
  if (login.session === undefined) return null;
  if (login.session === null) return <LoginPage />;
  return (
    <SessionProvider value={login.session}>
      <Frame>
        <PageGuard key={path}>
          <Page path={path} />
        </PageGuard>
      </Frame>
    </SessionProvider>
  );
}

function Page({ path }: { path: string }) {
  const jobId = /^\/jobs\/([^/]+)$/.exec(path)?.[1];
  if (jobId) return <JobPage key={jobId} jobId={jobId} />;
  const Known = pages[path];
  return Known ? <Known /> : <NotFound />;
}

function NotFound() {
  return (
    <>
      <PageHead title="Not found" />
      <Empty title="There is no page at this address">The menu leads to those there are.</Empty>
    </>
  );
}
