"""Everything that runs jobs: lifecycle, fetching, execution, leases, supervision."""
